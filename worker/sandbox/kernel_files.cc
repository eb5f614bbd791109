#include "worker/sandbox/kernel_files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <cerrno>

#include "common/base/files.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {
constexpr const char* kNull = "/dev/null";

// Through a mount of its own that is read-only: what is written to a device is no change of it, but
// its mode and its times are.  Without root it is nobody's here to change.
UniqueFd mount_read_only() {
  UniqueFd tree(
      ::open_tree(AT_FDCWD, kNull, OPEN_TREE_CLONE | static_cast<unsigned>(OPEN_TREE_CLOEXEC)));
  if (!tree.valid()) return {};
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return {};
  return tree;
}
}  // namespace

bool make_devices(const char* dir, unsigned owner) {
  constexpr mode_t kForAll = 0666;
  const int folder = raw::open_place(dir);
  if (folder < 0) return false;
  bool made = true;
  for (const Device& device : kDevices)
    made = made &&
           ::mknodat(folder, device.name, S_IFCHR | kForAll,
                     ::makedev(device.major, device.minor)) == 0 &&
           ::fchmodat(folder, device.name, kForAll, 0) == 0 &&  // whatever our mask
           (owner == 0 || ::fchownat(folder, device.name, owner, owner, 0) == 0);
  const int error = errno;
  raw::close(folder);
  errno = error;
  return made;
}

Result<UniqueFd> nothing_to_read() {
  static const UniqueFd tree = mount_read_only();
  const std::string place =
      tree.valid() ? "/proc/self/fd/" + std::to_string(tree.get()) : std::string(kNull);
  UniqueFd fd(::open(place.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open /dev/null", errno);
  return fd;
}
}  // namespace proctor
