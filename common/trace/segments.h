#pragma once
// What was said to models and by them, in a run directory: pieces of texts, each once, named by
// their SHA-256.  A conversation is sent again with every call of an agent; its pieces are not kept
// again.
//   agent/model/segments   the pieces, one behind the other
//   agent/model/index      a line for each, in the same order: DIGEST OFFSET LENGTH
// A piece is written before its line, so that a writer that is killed leaves at most bytes that no
// line names, and at most one line that has no end; both are cut off when writing goes on.
// Adapter; the writer by one thread at a time.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

inline constexpr const char* kSaidDir = "agent/model";
inline constexpr const char* kSegmentsFile = "agent/model/segments";
inline constexpr const char* kSegmentIndexFile = "agent/model/index";
inline constexpr std::size_t kSegmentsMax = 500'000;

struct SegmentPlace {
  std::uint64_t offset = 0, bytes = 0;
};
using SegmentIndex = std::map<std::string, SegmentPlace, std::less<>>;  // by digest, as hex
// Lines without an end are left out.  kCorrupt: a line of another shape, a digest twice, a piece
// that does not follow the one before.
Result<SegmentIndex> parse_segment_index(std::string_view text);

class SegmentWriter {
 public:
  // Goes on where an earlier life stopped.  Nothing is made before the first piece.
  static Result<SegmentWriter> open(fs::path run_dir, std::uint64_t bytes_max);
  // False: there is no room for it, or it cannot be written.
  bool put(const std::string& digest, std::string_view bytes);

 private:
  SegmentWriter(fs::path dir, std::uint64_t bytes_max)
      : dir_(std::move(dir)), bytes_max_(bytes_max) {}
  bool begin();
  fs::path dir_;
  std::uint64_t bytes_max_;
  UniqueFd segments_, index_;
  SegmentIndex known_;
  std::uint64_t end_ = 0, index_end_ = 0;
};

class SegmentReader {
 public:
  // A run directory without any has an empty one.
  static Result<SegmentReader> open(const fs::path& run_dir);
  bool has(std::string_view digest) const { return index_.contains(digest); }
  const SegmentIndex& index() const { return index_; }
  // kNotFound; kCorrupt: its bytes have another digest.
  Result<std::string> read(std::string_view digest) const;

 private:
  SegmentReader(UniqueFd fd, SegmentIndex index) : fd_(std::move(fd)), index_(std::move(index)) {}
  UniqueFd fd_;
  SegmentIndex index_;
};

}  // namespace proctor
