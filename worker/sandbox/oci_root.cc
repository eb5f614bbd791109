#include "worker/sandbox/oci_root.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "worker/sandbox/devices.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {

constexpr mode_t kFolder = 0755;

// The container reads the options of its root in /proc/self/mountinfo, where the kernel keeps them
// as they were given: by descriptor they tell nothing of this host.  Without memory of its own, for
// a child that has its parent's.
class Words {
 public:
  Words& add(const char* text) {
    while (*text != '\0' && end_ + 1 < sizeof text_) text_[end_++] = *text++;
    text_[end_] = '\0';
    return *this;
  }
  Words& add_descriptor(int fd) {
    char digits[16] = {};
    std::size_t at = sizeof digits - 1;
    do {
      digits[--at] = static_cast<char>('0' + fd % 10);
      fd /= 10;
    } while (0 < fd);
    return add("/proc/self/fd/").add(digits + at);
  }
  const char* text() const { return static_cast<const char*>(text_); }

 private:
  char text_[160] = {};
  std::size_t end_ = 0;
};

// As options of tmpfs.
std::string owned_by(const UserCounts* owner) {
  if (owner == nullptr) return {};
  const std::string id = std::to_string(owner->root());
  return std::string(",uid=").append(id).append(",gid=").append(id);
}

}  // namespace

OciRoot::OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes,
                 Beside beside)
    : root_(bundle / "root"),
      layer_(bundle / "layer"),
      upper_(layer_ + "/upper"),
      work_(layer_ + "/work"),
      none_(layer_ + "/none"),
      // Programs ask for it to know that they are in a container, as the Docker Engine lets them.
      marker_(upper_ + "/.dockerenv"),
      image_(image_root.string()),
      owned_(owned_by(beside.owner)),
      layer_options_("mode=755,size=" + std::to_string(layer_bytes) + owned_),
      device_options_("mode=755,size=64k" + owned_),
      sys_(beside.sys ? bundle / "sys" : fs::path()),
      beside_(beside) {}

Result<OciRoot> OciRoot::prepare(const fs::path& image_root, const fs::path& bundle,
                                 std::uint64_t layer_bytes, Beside beside) {
  OciRoot out(image_root, bundle, layer_bytes, beside);
  PROCTOR_CHECK_OK(make_dirs(out.root_));
  PROCTOR_CHECK_OK(make_dirs(out.layer_));
  if (beside.sys) PROCTOR_CHECK_OK(make_dirs(out.sys_));
  return out;
}

Result<std::string> OciRoot::show(const std::string& from, bool written) {
  struct stat st {};
  if (::stat(from.c_str(), &st) != 0) return errno_error("show " + from, errno);
  std::string at = layer_ + "/shown" + std::to_string(places_.size());
  places_.push_back({from, at, S_ISDIR(st.st_mode), written});
  return at;
}

std::string OciRoot::show_own(const std::string& from) {
  std::string at = layer_ + "/own" + std::to_string(own_.size());
  own_.push_back({from, at, /*folder=*/true, /*written=*/false});
  return at;
}

bool OciRoot::give(const std::string& path) const {
  return beside_.owner == nullptr ||
         ::lchown(path.c_str(), beside_.owner->root(), beside_.owner->root()) == 0;
}

int OciRoot::open_as_owner(const std::string& folder) const {
  if (beside_.owner == nullptr) return raw::open_place(folder.c_str());
  const int tree = ::open_tree(AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return 0 <= tree && beside_.owner->lend(tree) ? tree : -1;
}

bool OciRoot::attach(const Place& place) const {
  constexpr unsigned kForOwner = 0600;
  if (place.folder ? ::mkdir(place.at.c_str(), kFolder) != 0 && errno != EEXIST
                   : !raw::make_file(place.at.c_str(), kForOwner))
    return false;
  const int tree =
      ::open_tree(AT_FDCWD, place.from.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (tree < 0) return false;
  if (beside_.owner != nullptr && !beside_.owner->lend(tree) && place.written) {
    const int error = errno;
    struct stat st {};  // it may be his as it is
    const bool his = ::fstat(tree, &st) == 0 && st.st_uid == beside_.owner->root();
    errno = error;
    if (!his) return false;
  }
  return ::move_mount(tree, "", AT_FDCWD, place.at.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
         raw::close(tree);
}

bool OciRoot::attach_own(const Place& place) const {
  const int lower = open_as_owner(place.from);
  const int none = raw::open_place(none_.c_str());  // it wants two
  if (lower < 0 || none < 0 || ::mkdir(place.at.c_str(), kFolder) != 0) return false;
  Words options;
  options.add("lowerdir=").add_descriptor(lower).add(":").add_descriptor(none);
  const bool mounted = ::mount("overlay", place.at.c_str(), "overlay",
                               MS_RDONLY | MS_NODEV | MS_NOATIME, options.text()) == 0;
  if (!raw::close(lower) || !raw::close(none)) return false;
  // Not every file system can lie below an overlay: then it is shown as it is.
  return mounted || attach(place);
}

bool OciRoot::mount_overlay() const {
  const int image = open_as_owner(image_), layer = raw::open_place(layer_.c_str());
  if (image < 0 || layer < 0) return false;
  Words options;
  options.add("lowerdir=").add_descriptor(image).add(",upperdir=").add_descriptor(layer);
  options.add("/upper,workdir=").add_descriptor(layer).add("/work");
  return ::mount("overlay", root_.c_str(), "overlay", MS_NODEV, options.text()) == 0 &&
         raw::close(image) && raw::close(layer);
}

bool OciRoot::enter() const {
  // Slave: what is unmounted on the host goes away here too, and nothing of ours gets out.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return false;
  // Backs the mount points that the runtime makes before it turns the root read-only.
  if (::mount("tmpfs", layer_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, layer_options_.c_str()) !=
          0 ||
      ::mkdir(upper_.c_str(), kFolder) != 0 || ::mkdir(work_.c_str(), kFolder) != 0)
    return false;
  if (!raw::make_file(marker_.c_str(), kFolder) || !give(upper_) || !give(marker_)) return false;
  if (!mount_overlay()) return false;
  if (beside_.sys && ::mount("sysfs", sys_.c_str(), "sysfs",
                             MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return false;
  if (::mkdir(none_.c_str(), kFolder) != 0) return false;
  for (const Place& place : own_)
    if (!attach_own(place)) return false;
  for (const Place& place : places_)
    if (!attach(place)) return false;
  return !beside_.devices || mount_devices();
}

bool OciRoot::mount_devices() const {
  return ::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, device_options_.c_str()) == 0 &&
         make_devices("/dev", beside_.owner == nullptr ? 0 : beside_.owner->root());
}

}  // namespace proctor
