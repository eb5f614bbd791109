#include "common/base/own_user.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/namespace_maker.h"

namespace proctor {
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
