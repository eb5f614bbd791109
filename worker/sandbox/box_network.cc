#include "worker/sandbox/box_network.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "worker/sandbox/port_look.h"
#include "worker/sandbox/put_word.h"

namespace proctor {
namespace {

enum Answer : int { kNobody = 10, kSomebody = 11 };

// What follows runs between fork and _exit: async-signal-safe calls only.

bool bring_up_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return up;
}

struct Maps {
  std::string users, groups;  // "0 1000 1"
};

// 0, or why not.
int make_namespaces(const Maps& maps, bool user) {
  if (::unshare(user ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET) != 0) return errno;
  if (user && (!put_word("/proc/self/setgroups", "deny", 4) ||
               !put_word("/proc/self/uid_map", maps.users.data(), maps.users.size()) ||
               !put_word("/proc/self/gid_map", maps.groups.data(), maps.groups.size())))
    return EPERM;
  if (!bring_up_loopback()) return ENETDOWN;
  // All of its ports may be used.  Where /proc/sys is read-only, those from 1024 on.
  (void)put_word("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", 1);
  (void)put_word("/proc/sys/net/ipv4/ping_group_range", "0 2147483647", 12);
  return 0;
}

int exit_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Result<std::shared_ptr<SharedNetwork>> BoxNetwork::make() {
  const auto of = [](std::uint64_t id) { return "0 " + std::to_string(id) + " 1"; };
  const Maps maps{of(::geteuid()), of(::getegid())};
  // Of our own user namespace where we may; that is cheaper to enter, and who runs inside has no
  // right over it at all.
  bool user = ::geteuid() != 0;
  const auto make = [&] { return make_namespaces(maps, user); };
  auto maker = std::make_unique<NamespaceMaker>();
  Status made = maker->begin("a network namespace", make);
  if (!made.ok() && !user) {
    user = true;
    maker = std::make_unique<NamespaceMaker>();
    made = maker->begin("a network namespace", make);
  }
  if (!made.ok())
    return Error{Errc::kUnavailable, "shared network: " + std::move(made).error().detail};
  UniqueFd users;
  if (user) {
    PROCTOR_TRY(users, maker->open("user"));
  }
  PROCTOR_TRY(UniqueFd network, maker->open("net"));
  return std::shared_ptr<SharedNetwork>(new BoxNetwork(std::move(users), std::move(network)));
}

bool BoxNetwork::enter() const {
  return (!user_.valid() || ::setns(user_.get(), CLONE_NEWUSER) == 0) &&
         ::setns(network_.get(), CLONE_NEWNET) == 0;
}

bool BoxNetwork::enter_counts(const UserCounts& counts) const {
  constexpr std::string_view kOnlyUser = "0 0 1";
  return user_.valid() ? counts.enter_below(kOnlyUser, kOnlyUser) : counts.enter();
}

Result<bool> BoxNetwork::accepts(std::uint16_t port) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent || !enter()) ::_exit(1);
    ::_exit(somebody_accepts(port) ? kSomebody : kNobody);
  }
  if (pid < 0) return errno_error("fork", errno);
  const int code = exit_of(pid);
  if (code != kSomebody && code != kNobody)
    return Error{Errc::kUnavailable, "shared network: it cannot be entered"};
  return code == kSomebody;
}

}  // namespace proctor
