#include "common/base/own_mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/unique_fd.h"

namespace proctor {
namespace {

bool moved = false;

bool put(const char* file, std::string_view text) {
  const UniqueFd fd(::open(file, O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == ssize_t(text.size());
}

// 0, or the errno of what failed.
int move_there() {
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
  // Groups cannot be mapped by one without root unless nobody may drop any (CVE-2014-8989).
  if (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", uid + " " + uid + " 1") ||
      !put("/proc/self/gid_map", gid + " " + gid + " 1"))
    return errno;
  // What the host mounts later is seen here too, and not the other way round.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  return 0;
}

// Some hosts let everybody make a user namespace and nobody mount in it.
int try_in_child() {
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    int failed = move_there();
    if (failed == 0 && ::mount("proctor", "/", "tmpfs", MS_NODEV, nullptr) != 0) failed = errno;
    ::_exit(failed);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

}  // namespace

Status enter_own_mounts() {
  if (moved) return ok_status();
  int failed = try_in_child();
  if (failed == 0) failed = move_there();
  if (failed != 0)
    return Error{Errc::kUnavailable,
                 "mounts in a user namespace: " + errno_error("tried", failed).detail};
  moved = true;
  return ok_status();
}

bool has_own_mounts() {
  return moved;
}

}  // namespace proctor
