#pragma once
// Layers laid one over the other into one root file system, as root: owners, modes, links and the
// marks by which a layer takes away what lies below it.  A layer is a stranger's: nothing leaves
// the root, no link is followed on the way, devices are left out (a sandbox has none).
// Blocking; one root, one thread.  Fails with kInvalid (not a tar, other contents than the digest
// says, a path that leads out), errno_error's (a full disk).
// Source: OCI image-spec 1.0, layer.md.
#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

// `layer` is a tar, plain or compressed (gzip, zstd); `contents` is the digest of it uncompressed.
// The bytes of files that were unpacked.
Result<std::uint64_t> apply_layer(const fs::path& layer, const Digest& contents,
                                  const fs::path& root);

}  // namespace proctor
