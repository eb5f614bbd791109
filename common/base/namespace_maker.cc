#include "common/base/namespace_maker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/base/files.h"

namespace proctor {

NamespaceMaker::~NamespaceMaker() {
  if (pid_ <= 0) return;
  // Not by the end of a pipe: the processes of other threads' makers, which execute nothing, have
  // that pipe too.
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status NamespaceMaker::begin(const char* what, const std::function<int()>& make) {
  std::array<int, 2> said{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  UniqueFd said_read(said[0]), said_write(said[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    const auto end_with_parent = [parent] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
    };
    end_with_parent();
    const auto error = static_cast<unsigned char>(make());
    end_with_parent();  // the kernel forgets it where a user or a user namespace changes
    if (::write(said[1], &error, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  if (pid_ < 0) return errno_error("fork", errno);
  said_write.reset();
  unsigned char error = EPIPE;
  while (::read(said_read.get(), &error, 1) < 0 && errno == EINTR) {
  }
  if (error != 0) return errno_error(what, error);
  return ok_status();
}

Result<UniqueFd> NamespaceMaker::open(const char* kind) const {
  const std::string file = "/proc/" + std::to_string(pid_) + "/ns/" + kind;
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + file, errno);
  return fd;
}

}  // namespace proctor
