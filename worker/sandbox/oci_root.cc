#include "worker/sandbox/oci_root.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "worker/sandbox/devices.h"
#include "worker/sandbox/raw_calls.h"

namespace proctor {
namespace {

constexpr mode_t kFolder = 0755;

}  // namespace

OciRoot::OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes,
                 Beside beside)
    : root_(bundle / "root"),
      layer_(bundle / "layer"),
      upper_(layer_ + "/upper"),
      work_(layer_ + "/work"),
      // Programs ask for it to know that they are in a container, as the Docker Engine lets them.
      marker_(upper_ + "/.dockerenv"),
      options_("lowerdir=" + image_root.string() + ",upperdir=" + upper_ + ",workdir=" + work_),
      layer_options_("mode=755,size=" + std::to_string(layer_bytes)),
      sys_(beside.sys ? bundle / "sys" : fs::path()),
      beside_(beside) {}

Result<OciRoot> OciRoot::prepare(const fs::path& image_root, const fs::path& bundle,
                                 std::uint64_t layer_bytes, Beside beside) {
  // Both would be read as the end of a word of the mount's options.
  if (image_root.native().find_first_of(",:\\") != std::string::npos ||
      bundle.native().find_first_of(",:\\") != std::string::npos) {
    return Error{Errc::kInvalid,
                 "oci: ',', ':' or '\\' in " + image_root.string() + " or " + bundle.string()};
  }
  OciRoot out(image_root, bundle, layer_bytes, beside);
  PROCTOR_CHECK_OK(make_dirs(out.root_));
  PROCTOR_CHECK_OK(make_dirs(out.layer_));
  if (beside.sys) PROCTOR_CHECK_OK(make_dirs(out.sys_));
  return out;
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
  if (::mount("overlay", root_.c_str(), "overlay", MS_NODEV, options_.c_str()) != 0) return false;
  if (beside_.sys && ::mount("sysfs", sys_.c_str(), "sysfs",
                             MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return false;
  return !beside_.devices ||
         (::mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") == 0 &&
          make_devices("/dev"));
}

}  // namespace proctor
