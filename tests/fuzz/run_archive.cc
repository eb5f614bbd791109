// What a worker uploads and the coordinator unpacks: all of it below the folder or nothing at all,
// within the bounds, and packed again it is the same tree.  Fuzzers do not get through zstd, so
// after an even first byte the rest is a tar that is compressed here.
#include <zstd.h>

#include <algorithm>

#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::run_archive {

std::string compressed(std::string_view tar) {
  std::string out(ZSTD_compressBound(tar.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), tar.data(), tar.size(), 1));
  return out;
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

void target(std::string_view bytes) {
  const bool plain = take_byte(bytes) % 2 == 0;
  const fs::path top = scratch_folder() / "archive";
  must(remove_tree(top));
  must(make_dirs(top));
  const fs::path archive = top / "a.tar.zst", into = top / "a", packed = top / "b.tar.zst";
  must(write_file(archive, plain ? compressed(bytes) : std::string(bytes), Durability::kLazy));
  constexpr UnpackBounds kBounds{.archive_bytes = 1U << 20,
                                 .entries = 32,
                                 .total_bytes = 1U << 16,
                                 .durability = Durability::kLazy};
  const Status unpacked = unpack_archive(archive, into, kBounds);
  PROCTOR_ASSERT(entries_in(top) == (unpacked.ok() ? 2 : 1));
  if (!unpacked.ok()) return;
  const auto tree = must(list_tree(into));
  PROCTOR_ASSERT(tree.size() <= 2 * kBounds.entries * limits::kConfigDepth);
  std::uint64_t total = 0;
  for (const TreeEntry& entry : tree) total += entry.bytes;
  PROCTOR_ASSERT(total <= kBounds.total_bytes);
  const ArchiveInfo first = must(pack_archive(into, packed));
  must(unpack_archive(packed, top / "b", {.durability = Durability::kLazy}));
  PROCTOR_ASSERT(must(pack_archive(top / "b", top / "c.tar.zst")).digest == first.digest);
}

}  // namespace proctor::fuzz::run_archive
