#pragma once
// What report_text.cc and composite_text.cc share: reading report.json and laying out its tables.
// Private to the room.
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/cvdp/pycompat/decimal.h"
#include "coordinator/cvdp/report/grid.h"
#include "coordinator/cvdp/report/report.h"

namespace proctor::cvdp {

struct DifficultyName {
  const char* key;
  const char* title;
};
inline constexpr std::array<DifficultyName, 3> kDifficulties = {
    {{"easy", "Easy"}, {"medium", "Medium"}, {"hard", "Hard"}}};
inline constexpr std::string_view kFootnote =
    "* Categories marked with asterisk use score-based scoring (0-1 range) instead of binary "
    "pass/fail\n";

struct Tally {
  Count passed;
  Count failed;
  Count total;
  void add(const Tally& t) {
    passed.add(t.passed);
    failed.add(t.failed);
    total.add(t.total);
  }
  double rate() const { return total.value == 0 ? 0 : passed.value / total.value * 100; }
};

// Categories of a report in the order of their names.
std::vector<std::pair<std::string, const Object*>> categories_of(const Object& report);
// `what` is "Tests" or "Problems".
Tally tally_of(const Object& category, const char* difficulty, const std::string& what);
std::string category_title(const std::string& category);  // with its asterisk
// Dataset, time, mode; up to where a composite report differs.
std::string report_head(const Object& metadata);
std::string text_or(const Object& object, std::string_view key, std::string_view otherwise);
inline std::string section(const std::string& title, const Grid& grid) {
  return "\n=== " + title + " ===\n" + render_grid(grid) + "\n";
}

}  // namespace proctor::cvdp
