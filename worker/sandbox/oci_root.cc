#include "worker/sandbox/oci_root.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

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

}  // namespace

OciRoot::OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes,
                 Beside beside)
    : root_(bundle / "root"),
      layer_(bundle / "layer"),
      upper_(layer_ + "/upper"),
      work_(layer_ + "/work"),
      // Programs ask for it to know that they are in a container, as the Docker Engine lets them.
      marker_(upper_ + "/.dockerenv"),
      image_(image_root.string()),
      layer_options_("mode=755,size=" + std::to_string(layer_bytes)),
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

bool OciRoot::mount_overlay() const {
  const int image = raw::open_place(image_.c_str()), layer = raw::open_place(layer_.c_str());
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
  if (!raw::make_file(marker_.c_str(), kFolder)) return false;
  if (!mount_overlay()) return false;
  if (beside_.sys && ::mount("sysfs", sys_.c_str(), "sysfs",
                             MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return false;
  return !beside_.devices ||
         (::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") == 0 &&
          make_devices("/dev"));
}

}  // namespace proctor
