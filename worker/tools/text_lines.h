#pragma once
// Texts as tools show and change them: lines with numbers, the head and tail of what is long, one
// text for another.  Whatever comes out is UTF-8 and bounded.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "worker/tools/tool_arguments.h"

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

struct ShownStream {
  std::string text;
  std::uint64_t left_out = 0;  // bytes
};
// Its beginning and its end, with a line between that says how much is not there.
ShownStream head_and_tail(std::string_view bytes,
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

}  // namespace proctor
