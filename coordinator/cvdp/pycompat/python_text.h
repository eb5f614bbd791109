#pragma once
// Text operations as Python's str has them: lines, words and lower case (Unicode 14).
// Pure; any thread; never fails.  Source: CVDP 3.1, 3.4, 8.5.
#include <string>
#include <string_view>
#include <vector>

namespace proctor::cvdp {

// str.splitlines(): ends at \n, \r, \r\n, \v, \f, FS, GS, RS, NEL, LS and PS; no last empty line.
std::vector<std::string_view> split_lines(std::string_view text);
// str.split("\n"): always at least one element.
std::vector<std::string_view> split_at_newlines(std::string_view text);
std::string join_lines(const std::vector<std::string_view>& lines);

// str.lower(), str.split() and re.sub(r"[^\w\s]", "", text).
std::string lower_text(std::string_view text);
std::vector<std::string_view> split_words(std::string_view text);
std::string without_punctuation(std::string_view text);

}  // namespace proctor::cvdp
