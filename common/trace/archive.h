#pragma once
// A run directory as one file: tar (GNU) in zstd, the same bytes for the same folder.  Names are
// sorted, owner and time are zero, modes are 0644 and 0755; regular files and folders, nothing
// else.  Archives that arrive over the wire are hostile: see unpack_archive.
// Adapter (file system, libarchive); functions are thread-safe for different files.
#include <cstdint>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/base/result.h"

namespace proctor {
struct ArchiveInfo {
  Digest digest;  // of the file's bytes
  std::uint64_t bytes = 0;
};
// Writes `out_file` whole (synced, then renamed) or not at all; its name is on disk once the caller
// syncs the folder it finally lies in.  `out_file` must not lie in `dir`.
// kInvalid: something that is neither file nor folder, a file that changed meanwhile, or beyond
// limits::kArchiveBytes or limits::kArchiveEntries.  kExhausted, kUnavailable: this machine's want.
Result<ArchiveInfo> pack_archive(const fs::path& dir, const fs::path& out_file);

// Folders on the way to an entry, at most: unpack_archive refuses what lies deeper.
inline constexpr std::size_t kArchiveDepth = 32;

struct UnpackBounds {
  std::uint64_t archive_bytes = limits::kArchiveBytes;
  std::uint64_t entries = limits::kArchiveEntries;
  std::uint64_t total_bytes = std::uint64_t{4} << 30;  // of all files, unpacked
  Durability durability = Durability::kSync;
};
// Makes the folder `into`, which must not exist, with everything in it or not at all: entries go
// to a new folder beside it that is renamed at the end; what is in it is synced, its name is on
// disk once the caller syncs the folder it finally lies in.  kInvalid: the archive is at fault and
// always will be; names the entry: a path that is not safe (files.h) or comes twice, a link, device
// or other kind, a file that is cut, or a bound that is passed.  kUnavailable: this machine could
// not, for want of memory, files, room, or a disk that reads and writes; the same archive may be
// unpacked later.  kConflict: `into` is there.
Status unpack_archive(const fs::path& archive, const fs::path& into,
                      const UnpackBounds& bounds = {});
}  // namespace proctor
