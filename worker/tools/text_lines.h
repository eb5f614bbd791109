#pragma once
// Texts as tools show and change them: lines with numbers, the head and tail of what is long, one
// text for another, unified diffs.  Whatever comes out is UTF-8 and bounded.  Pure; any
// thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "worker/tools/tool_list.h"

namespace proctor {
// Each with its end; the last may have none.
std::vector<std::string_view> lines_of(std::string_view text);
// A line without its end.
std::string_view bare(std::string_view line);

// Text to people and models: UTF-8 without NUL.
bool is_text(std::string_view bytes);
// As it may be told: what is no UTF-8 is replaced.
std::string as_text(std::string_view bytes);

struct NumberedLines {
  std::string text;
  std::uint64_t shown = 0, lines = 0;
};
// From line `offset` on, counted from 1; as many as are asked for and `bytes_max` holds.
NumberedLines number_lines(std::string_view text, std::uint64_t offset, std::uint64_t limit,
                           std::size_t bytes_max = tool_bounds::kReadBytes);

// Its beginning and its end, with a line between that says how much is not there.
std::string head_and_tail(std::string_view bytes,
                          std::size_t bytes_max = tool_bounds::kStreamBytes);
// Its beginning, at the end of a character.
std::string head_of(std::string_view bytes, std::size_t bytes_max);

struct EditedText {
  std::string text;
  std::vector<std::uint64_t> lines;  // in which a replacement begins, of the old text
};
inline constexpr std::size_t kEditedMax = std::size_t{16} << 20;
// Errors: kInvalid, in words for the model: old_text is there more or less often than said.
Result<EditedText> edit_text(std::string_view old, const EditFile& edit);

// A unified diff as models write it, read strictly and applied to texts: hunks by their exact
// lines, at their place or, as their numbers are often wrong, at the nearest one behind the hunk
// before.  Without fuzz: what is between is never guessed.  Renames, copies, modes and binary hunks
// are refused by name.  Errors: kInvalid, in words for the model.

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
