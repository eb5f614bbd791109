#include "worker/sandbox/box_namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <sstream>
#include <utility>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "worker/sandbox/inner_socket.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
// One word for a file of the kernel's own, as those of /proc and /sys take it.
bool put_word(const char* file, const char* text, std::size_t size) {
  const int fd = raw::open_to_write(file);
  if (fd < 0) return false;
  const bool written = raw::write(fd, text, size);
  const int error = errno;
  raw::close(fd);
  errno = error;
  return written;
}

namespace {
constexpr std::size_t kMapMost = std::size_t{64} << 10;

using Range = UserCounts::Range;

// The users, or groups, that this process's namespace has.
Result<std::vector<Range>> ranges_of(const char* file) {
  PROCTOR_TRY(const std::string text, read_file(file, kMapMost));
  std::istringstream words(text);
  std::vector<Range> out;
  for (std::uint64_t inside = 0, outside = 0, count = 0; words >> inside >> outside >> count;)
    out.push_back({inside, inside, count});
  if (out.empty()) return Error{Errc::kUnavailable, std::string(file) + ": empty"};
  return out;
}

// Each is itself but root, who is `root`; whoever is that one has no other number here.
std::vector<Range> with_root(const std::vector<Range>& ranges, std::uint64_t root) {
  std::vector<Range> out{{0, root, 1}};
  for (const Range& r : ranges) {
    std::uint64_t at = r.first;
    const std::uint64_t end = r.first + r.count;
    for (const std::uint64_t taken : {std::uint64_t{0}, root}) {
      if (taken < at || end <= taken) continue;
      if (at < taken) out.push_back({at, at, taken - at});
      at = taken + 1;
    }
    if (at < end) out.push_back({at, at, end - at});
  }
  return out;
}

std::string lines_of(const std::vector<Range>& ranges) {
  std::string out;
  for (const Range& r : ranges)
    out.append(std::to_string(r.first))
        .append(" ")
        .append(std::to_string(r.outside))
        .append(" ")
        .append(std::to_string(r.count))
        .append("\n");
  return out;
}

// A user whom nobody is: above what is given to containers and to systemd's own users.  By
// chance, so that workers of one host hardly share any, in containers of their own too; where this
// namespace has only some numbers, its highest.
std::uint32_t fresh_user(const std::vector<Range>& users) {
  constexpr std::uint64_t kFirst = 0x8000'0000, kEach = 511;
  constexpr unsigned kEachBits = 9, kChanceBits = 22;
  static std::atomic<std::uint64_t> next{0};
  const std::uint64_t number = next++ % kEach;
  static const std::uint64_t mine =
      std::random_device{}() & ((std::uint32_t{1} << kChanceBits) - 1);
  const std::uint64_t user = kFirst + (mine << kEachBits) + number;
  for (const Range& r : users)
    if (r.first <= user && user < r.first + r.count) return static_cast<std::uint32_t>(user);
  const Range& last = users.back();
  return static_cast<std::uint32_t>(last.first + last.count - 1 - number % last.count);
}

// The maker's rights are gone with this, but for those over what it then makes.
int make_as(std::uint32_t user) {
  // Of this thread alone, which is the only one after fork; glibc's asks the others.
  if (::syscall(SYS_setresuid, -1, user, -1) != 0) return errno;
  return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}

Result<UniqueFd> make_as_root(const std::vector<Range>& users, const std::vector<Range>& groups) {
  const std::uint32_t user = fresh_user(users);
  NamespaceMaker maker;
  PROCTOR_CHECK_OK(maker.begin("a user namespace", [&] { return make_as(user); }));
  const std::string own = "/proc/" + std::to_string(maker.pid());
  for (const auto& [file, ranges] : {std::pair{"/uid_map", &users}, {"/gid_map", &groups}}) {
    const std::string map = lines_of(*ranges);
    if (!put_word((own + file).c_str(), map.data(), map.size()))
      return errno_error("write " + own + file, errno);
  }
  return maker.open("user");
}

bool map_ids(std::string_view users, std::string_view groups) {
  return put_word("/proc/self/setgroups", "deny", 4) &&
         put_word("/proc/self/uid_map", users.data(), users.size()) &&
         put_word("/proc/self/gid_map", groups.data(), groups.size());
}

int make_as_user(std::string_view users, std::string_view groups,
                 const std::vector<UserCounts::Share>& shares) {
  if (::unshare(CLONE_NEWUSER) != 0) return errno;
  if (!map_ids(users, groups)) return EPERM;
  for (const UserCounts::Share& share : shares)
    if (!put_word(share.file, share.most.data(), share.most.size())) return errno;
  return 0;
}

// One sandbox's part of what this user may have.
std::vector<UserCounts::Share> shares_of_one() {
  // Where the host's kernel says what any user may have, and where a namespace says its own.
  constexpr std::array<std::pair<const char*, const char*>, 3> kCounts = {
      {{"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"},
       {"/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"},
       {"/proc/sys/fs/fanotify/max_user_groups", "/proc/sys/user/max_fanotify_groups"}}};
  std::vector<UserCounts::Share> shares;
  for (const auto& [host, own] : kCounts) {
    const Result<std::string> text = read_file(host, kMapMost);
    if (!text.ok()) continue;  // this kernel does not have it
    std::uint64_t most = 0;
    std::istringstream(*text) >> most;
    shares.push_back({own, std::to_string(most / kUserShare)});
  }
  return shares;
}

Result<UniqueFd> make_without_root(const std::vector<Range>& user_ids,
                                   const std::vector<Range>& group_ids) {
  const std::vector<UserCounts::Share> shares = shares_of_one();
  const std::string users = lines_of(user_ids), groups = lines_of(group_ids);
  NamespaceMaker maker;
  PROCTOR_CHECK_OK(
      maker.begin("a user namespace", [&] { return make_as_user(users, groups, shares); }));
  return maker.open("user");
}

// -1: it did not exit by itself.
int exit_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// In a container's namespaces, by a process that is in the first of them: 0, or an errno.
int try_mounts() {
  if (::unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) != 0) return errno;
  const pid_t pid = ::fork();  // only a child is in the new pid namespace
  if (pid < 0) return errno;
  if (pid == 0) {
    const bool mounted = ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
                         ::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
    ::_exit(mounted ? 0 : errno);
  }
  const int code = exit_of(pid);
  return code < 0 ? ECHILD : code;
}
}  // namespace

Result<UserCounts> UserCounts::make(std::optional<std::uint32_t> root) {
  const bool by_root = ::geteuid() == 0;
  std::vector<Range> users{{::geteuid(), ::geteuid(), 1}}, groups{{::getegid(), ::getegid(), 1}};
  if (by_root) {
    PROCTOR_TRY(users, ranges_of("/proc/self/uid_map"));
    PROCTOR_TRY(groups, ranges_of("/proc/self/gid_map"));
  }
  if (root) {
    users = with_root(users, *root);
    groups = with_root(groups, *root);
  }
  auto made = by_root ? make_as_root(users, groups) : make_without_root(users, groups);
  if (!made.ok())
    return Error{Errc::kUnavailable, "counts of a sandbox's own: " + made.error().detail};
  UserCounts out(std::move(made).value(), std::move(users), std::move(groups));
  out.shares_ = shares_of_one();
  return out;
}

Status UserCounts::mounts() const {
  NamespaceMaker maker;
  return maker.begin("mounts in a user namespace", [&] { return enter() ? try_mounts() : errno; });
}

bool UserCounts::enter() const {
  return ::setns(user_.get(), CLONE_NEWUSER) == 0;
}

bool UserCounts::enter_below(std::string_view users, std::string_view groups) const {
  return make_as_user(users, groups, shares_) == 0;
}

bool UserCounts::lend(int tree) const {
  return map_owners(tree, user_.get());
}

std::string UserCounts::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(user_.get());
}

UserCountsPool::UserCountsPool(For whom) : state_(std::make_shared<State>()) {
  auto first = UserCounts::make();
  Status works = first.ok() ? ok_status() : Status(first.error());
  if (works.ok() && whom == For::kContainer) works = first->mounts();
  if (works.ok()) {
    state_->idle[std::nullopt].push_back(
        std::make_unique<const UserCounts>(std::move(first).value()));
  } else {
    log::info("sandboxes are counted with the worker: " + works.error().detail);
    state_.reset();
  }
}

Result<std::shared_ptr<const UserCounts>> UserCountsPool::take(
    std::optional<std::uint32_t> root) const {
  if (!state_) return std::shared_ptr<const UserCounts>();
  std::unique_ptr<const UserCounts> one;
  {
    const std::lock_guard lock(state_->mutex);
    if (auto& idle = state_->idle[root]; !idle.empty()) {
      one = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!one) {
    PROCTOR_TRY(UserCounts made, UserCounts::make(root));
    one = std::make_unique<const UserCounts>(std::move(made));
  }
  return std::shared_ptr<const UserCounts>(one.release(),
                                           [state = state_, root](const UserCounts* used) {
                                             const std::lock_guard lock(state->mutex);
                                             state->idle[root].emplace_back(used);
                                           });
}

namespace {
enum Answer : int { kNobody = 10, kSomebody = 11 };

// All that follows runs between fork and _exit: async-signal-safe calls only.

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
  if (user && !map_ids(maps.users, maps.groups)) return EPERM;
  if (!bring_up_loopback()) return ENETDOWN;
  // All of its ports may be used.  Where /proc/sys is read-only, those from 1024 on.
  (void)put_word("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", 1);
  (void)put_word("/proc/sys/net/ipv4/ping_group_range", "0 2147483647", 12);
  return 0;
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
