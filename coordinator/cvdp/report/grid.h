#pragma once
// Tables between lines of "+--+" as Python's tabulate draws them in its "grid" format: a column
// whose cells all are numbers stands right, aligned at the decimal point and with six digits; any
// other stands left, its cells trimmed.  A cell may have several lines.  Pure; any thread; never
// fails. Source: CVDP 9.3, 9.7 (tabulate 0.8.9).
#include <string>
#include <string_view>
#include <vector>

namespace proctor::cvdp {

struct Grid {
  std::vector<std::string> header;  // empty: none
  std::vector<std::vector<std::string>> rows;
};
// Without a newline at its end.  Requires: every row has as many cells as the header or first row.
std::string render_grid(const Grid& grid);

}  // namespace proctor::cvdp
