#include "common/base/namespaces.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

// OwnUser.

namespace {
// Above what is given to people, to containers and to systemd's own users, and below 2^31: bwrap
// writes a user as a number with a sign.
constexpr std::uint32_t kFirst = 0x7000'0000;
constexpr std::uint32_t kAll = std::uint32_t{1} << 28;

// Of this process.  By chance: its own number would be another's too, in a container beside it.
// Ten workers of one host share some with a chance of 1 in 5,800.
std::uint32_t first_number() {
  static const std::uint32_t first = [] {
    std::random_device chance;
    return kFirst + chance() % (kAll / kOwnUsersMost) * kOwnUsersMost;
  }();
  return first;
}

using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

// Of this thread.
bool get_rights(Capabilities& rights) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, rights.data()) == 0;
}
bool set_rights(const Capabilities& rights) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capset, &header, rights.data()) == 0;
}

// This thread, and what it starts, is that user from now on, with root's rights over files.
bool become(std::uint32_t id) {
  constexpr std::array<unsigned, 5> kOverFiles = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
                                                  CAP_FOWNER, CAP_FSETID};
  Capabilities rights{};
  // access(2) too is to be answered by those rights.
  if (!get_rights(rights) || ::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) return false;
  // Of this thread alone; glibc's asks all others.
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, id, id, id) != 0 ||
      ::syscall(SYS_setresuid, id, id, id) != 0)
    return false;
  for (__user_cap_data_struct& words : rights) words.inheritable = 0;
  for (const unsigned right : kOverFiles)
    rights.at(CAP_TO_INDEX(right)).inheritable |= CAP_TO_MASK(right);
  if (!set_rights(rights)) return false;
  for (const unsigned right : kOverFiles)
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) != 0) return false;
  return true;
}

// A user namespace in which this user is root.
Result<UniqueFd> map_of(std::uint32_t id) {
  NamespaceMaker maker;
  PROCTOR_CHECK_OK(
      maker.begin("a user namespace", [] { return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno; }));
  const std::string own = "/proc/" + std::to_string(maker.pid());
  const std::string map = "0 " + std::to_string(id) + " 1\n";
  for (const char* file : {"/uid_map", "/gid_map"}) {
    const UniqueFd fd(::open((own + file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid() ||
        ::write(fd.get(), map.data(), map.size()) != static_cast<ssize_t>(map.size()))
      return errno_error("write " + own + file, errno);
  }
  return maker.open("user");
}

struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<const OwnUser>> idle;
  std::uint32_t made = 0;
};
Pool& pool() {
  static auto* const of_process = new Pool;  // threads may outlive what is static
  return *of_process;
}
}  // namespace

Result<OwnUser> OwnUser::make(std::uint32_t id) {
  auto map = map_of(id);
  if (!map.ok()) return Error{Errc::kUnavailable, "users of their own: " + map.error().detail};
  return OwnUser(id, std::move(map).value());
}

Result<std::shared_ptr<const OwnUser>> OwnUser::take() {
  if (::geteuid() != 0) return Error{Errc::kUnavailable, "users of their own: not root"};
  Pool& all = pool();
  std::unique_ptr<const OwnUser> one;
  std::uint32_t number = 0;
  {
    const std::lock_guard lock(all.mutex);
    if (!all.idle.empty()) {
      one = std::move(all.idle.back());
      all.idle.pop_back();
    } else if (all.made == kOwnUsersMost) {
      return Error{Errc::kExhausted, "users of their own: all are taken"};
    } else {
      number = first_number() + all.made++;
    }
  }
  if (!one) {
    PROCTOR_TRY(OwnUser made, make(number));
    one = std::make_unique<const OwnUser>(std::move(made));
  }
  return std::shared_ptr<const OwnUser>(one.release(), [](const OwnUser* used) {
    const std::lock_guard lock(pool().mutex);
    pool().idle.emplace_back(used);
  });
}

bool map_owners(int tree, int user_namespace) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<std::uint64_t>(user_namespace);
  return ::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) ==
             0 ||
         ::mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0;
}

bool OwnUser::lend(int tree) const {
  return map_owners(tree, map_.get());
}

Result<UniqueFd> OwnUser::view(const fs::path& place) const {
  UniqueFd tree(::open_tree(AT_FDCWD, place.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!tree.valid() || !lend(tree.get()))
    return errno_error("show " + place.string() + " to a user of its own", errno);
  return tree;
}

Result<CommandOutcome> OwnUser::run(const CommandSpec& spec) const {
  std::optional<Result<CommandOutcome>> outcome;
  std::thread([&] {
    if (become(id_))
      outcome.emplace(run_command(spec));
    else
      outcome.emplace(errno_error("become a user of its own", errno));
  }).join();
  return *std::move(outcome);
}

bool is_own_user(std::uint32_t id) {
  return kFirst <= id && id - kFirst < kAll;
}

// The rights over files are gone with the number, and come back with it.
ActingAs::ActingAs(const OwnUser* user) : acting_(user != nullptr) {
  if (!acting_) return;
  Capabilities rights{};
  const bool known = get_rights(rights);
  ::setfsgid(user->id());
  ::setfsuid(user->id());
  if (known) (void)set_rights(rights);
}

ActingAs::~ActingAs() {
  if (!acting_) return;
  ::setfsuid(0);
  ::setfsgid(0);
}
}  // namespace proctor
