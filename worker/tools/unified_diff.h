#pragma once
// A unified diff as models write it, read strictly and applied to texts: hunks by their exact
// lines, at their place or, as their numbers are often wrong, at the nearest one behind the hunk
// before.  No fuzz: what is between is never guessed.  Renames, copies, modes and binary hunks are
// refused by name.  Pure; any thread.
// Errors: kInvalid, in words for the model.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor {

struct DiffLine {
  char kind;         // ' ', '-' or '+'
  std::string text;  // with its end, if it has one
};
struct DiffHunk {
  std::uint64_t old_begin = 0, old_lines = 0, new_begin = 0, new_lines = 0;
  std::vector<DiffLine> lines;
  std::size_t at = 0;  // its line in the diff
};
struct DiffFile {
  std::string from, to;     // paths as tool_path() has them; empty: it is made, or removed
  bool executable = false;  // of one that is made
  std::vector<DiffHunk> hunks;
  std::size_t at = 0;
  const std::string& path() const { return to.empty() ? from : to; }
};

inline constexpr std::size_t kDiffFilesMax = 500, kDiffHunksMax = 2'000;

// At least one file, none of them twice.
Result<std::vector<DiffFile>> read_unified_diff(std::string_view diff);
// `old` is empty for a file that is made; one that is removed must come to nothing.
Result<std::string> apply_hunks(const DiffFile& file, std::string_view old);

}  // namespace proctor
