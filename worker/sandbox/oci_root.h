#pragma once
// The root file system of one OCI container: an overlay of an image's unpacked root and a private
// tmpfs, mounted by the process that becomes the runtime, in a mount namespace of its own.  When
// that process and its container are gone, so is all of it.
// Constructed before fork; enter() runs between fork and exec and calls only what is
// async-signal-safe.  Source: mount_namespaces(7), overlayfs.rst.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "worker/sandbox/user_counts.h"

namespace proctor {

class OciRoot {
 public:
  // What is mounted beside the root, for a runtime that makes it a container of a user namespace.
  struct Beside {
    bool devices = false;  // of its own, in place of the host's /dev: shown would be the host's
    bool sys = false;      // sysfs of the network it starts in, which is not that namespace's
    // Where root is a user of its own, to whom the root and what is shown belong; null: he is not.
    const UserCounts* owner = nullptr;
  };
  // Folders that lie in `bundle` and are made here: the root itself, and what backs it, which holds
  // `layer_bytes` at most.
  static Result<OciRoot> prepare(const fs::path& image_root, const fs::path& bundle,
                                 std::uint64_t layer_bytes, Beside beside);
  const fs::path& path() const { return root_; }
  const std::string& sys() const { return sys_; }  // where that is; empty: it is not
  // A folder or file of the host's as the owner is to see it, and at which place; `written`: or
  // enter() fails, for what cannot be his may still be read.
  Result<std::string> show(const std::string& from, bool written);
  // A folder of the host's with inodes of this container's own, as the owner is to see it, and at
  // which place.  Without what is mounted below.
  std::string show_own(const std::string& from);
  // False: errno says why not.
  bool enter() const;

 private:
  OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes,
          Beside beside);
  struct Place {
    std::string from, at;
    bool folder, written;
  };
  bool give(const std::string& path) const;  // to the owner
  int open_as_owner(const std::string& folder) const;
  bool mount_overlay() const;
  bool mount_devices() const;
  bool attach(const Place& place) const;
  bool attach_own(const Place& place) const;
  fs::path root_;
  std::string layer_, upper_, work_, none_, marker_, image_, owned_, layer_options_,
      device_options_, sys_;
  Beside beside_;
  std::vector<Place> places_, own_;
};

}  // namespace proctor
