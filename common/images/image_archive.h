#pragma once
// Archives of images: those of a build are made here, those of others are unpacked.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// The files of an image build, as the archive that a Docker Engine takes them in.  The same files
// make the same bytes.
struct ContextFile {
  std::string name;  // relative, safe
  std::uint32_t mode = 0644;
  std::string bytes;
};

// kUnavailable: no memory for it.
Result<std::string> build_context(const std::vector<ContextFile>& files);

// The files of an image archive (`docker save`, OCI layout), unpacked into a scratch folder under
// names of our own.  The archive is a stranger's: names are only keys here, never paths, links lead
// only to other files of the archive, sizes and numbers are bounded.
// One thread.  Fails with kInvalid (not such an archive), kExhausted (too large), errno_error's.
// Source: libarchive; OCI image-spec 1.0 image-layout.md.
class ImageArchive {
 public:
  // `scratch` is an empty folder that outlives this.
  static Result<ImageArchive> unpack(const fs::path& archive, const fs::path& scratch);
  bool has(const std::string& name) const { return files_.contains(name); }
  // Where the file of this name lies; kInvalid: the archive has none.
  Result<fs::path> file(const std::string& name) const;
  // A small one, whole.
  Result<std::string> text(const std::string& name) const;

 private:
  std::map<std::string, fs::path> files_;
};

// Layers laid one over the other into one root file system, as root: owners, modes, links and the
// marks by which a layer takes away what lies below it.  A layer is a stranger's: nothing leaves
// the root, no link is followed on the way, devices are left out (a sandbox has none).
// Blocking; one root, one thread.  Fails with kInvalid (not a tar, other contents than the digest
// says, a path that leads out), errno_error's (a full disk).
// Source: OCI image-spec 1.0, layer.md.

// `layer` is a tar, plain or compressed (gzip, zstd); `contents` is the digest of it uncompressed.
// The bytes of files that were unpacked.
Result<std::uint64_t> apply_layer(const fs::path& layer, const Digest& contents,
                                  const fs::path& root);
}  // namespace proctor
