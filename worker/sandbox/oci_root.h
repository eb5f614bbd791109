#pragma once
// The root file system of one OCI container: an overlay of an image's unpacked root and a private
// tmpfs, mounted by the process that becomes the runtime, in a mount namespace of its own.  When
// that process and its container are gone, so is all of it.
// Constructed before fork; enter() runs between fork and exec and calls only what is
// async-signal-safe.  Source: mount_namespaces(7), overlayfs.rst.
#include <string>

#include "common/base/files.h"

namespace proctor {

class OciRoot {
 public:
  // Folders that lie in `bundle` and are made here: the root itself, and what backs it, which holds
  // `layer_bytes` at most.
  static Result<OciRoot> prepare(const fs::path& image_root, const fs::path& bundle,
                                 std::uint64_t layer_bytes);
  const fs::path& path() const { return root_; }
  // False: errno says why not.
  bool enter() const;

 private:
  OciRoot(const fs::path& image_root, const fs::path& bundle, std::uint64_t layer_bytes);
  fs::path root_;
  std::string layer_, upper_, work_, marker_, options_, layer_options_;
};

}  // namespace proctor
