#pragma once
// Text operations as Python's str has them: where lines and words end.
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

}  // namespace proctor::cvdp
