#pragma once
// Reports of CVDP: report.json, report.txt and the composite of samples, with their tables.
// Pure; any thread.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
// Tables between lines of "+--+" as Python's tabulate draws them in its "grid" format: a column
// whose cells all are numbers is on the right, aligned at the decimal point and with six digits;
// any other is on the left, its cells trimmed.  A cell may have several lines.  Drawing never
// fails.  Source: CVDP 9.3, 9.7 (tabulate 0.8.9).
struct Grid {
  std::vector<std::string> header;  // empty: none
  std::vector<std::vector<std::string>> rows;
};
// Without a newline at its end.  Requires: every row has as many cells as the header or first row.
std::string render_grid(const Grid& grid);

// The reports every CVDP user knows: report.json out of raw_result.json, report.txt out of
// report.json, and both of several samples; the same bytes as upstream's.  Records that upstream
// cannot report (no difficulty, no number in the category) are left out and named.
// The time is the caller's.  Source: CVDP 9.1-9.7.

// Facts that raw_result.json does not hold; the members of "metadata" in their order.
struct ReportMetadata {
  std::string dataset_path;
  std::string timestamp;  // "2026-11-21 20:21:30", local time
  bool golden_mode = false;
  bool disable_patch = false;
  Value model_agent;  // text, or null
  bool force_agentic = false;
  bool force_agentic_include_golden = false;
  bool force_agentic_include_harness = false;
  bool force_copilot = false;
  Value copilot_refine;  // text, or null
  std::string prompts;   // whose sentences a model was asked with; empty: no model was, no member
};
Object metadata_json(const ReportMetadata& metadata);

// Problems of 6, 8, 9 and 10 pass in part: by their score.
bool is_scored_category(std::string_view category);

struct Report {
  Value json;
  std::vector<std::string> left_out;  // "ID: why"
};
// kInvalid: not a mapping of problems.
Result<Report> make_report(const Value& raw_result, const ReportMetadata& metadata);

// kInvalid: no report.json.
Result<std::string> render_report(const Value& report);

// composite_report.json of some report.json: write it with indent 2.
struct CompositeMetadata {
  std::string timestamp;
  std::int64_t k = 1;
  std::vector<std::string> prefixes;  // of the samples, one each
};
Result<Value> make_composite(const std::vector<Value>& reports, const CompositeMetadata& metadata);

// kInvalid: no composite report.  `k`: 0 takes the file's own.
Result<std::string> render_composite(const Value& composite, std::int64_t k = 0);
bool is_composite(const Value& report);

// Shared by report.cc and composite.cc: reading report.json and laying out its tables.
// Private to the room.

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
  Count passed, failed, total;
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
// "name | total | pass | fail | rate".
std::vector<std::string> tally_row(std::string name, const Tally& tally);
// The table "Overall ... Statistics" of tests or problems (`what` is "Test" or "Problem").
Grid overall_grid(const std::string& what, const Tally& all);
// A cell of a matrix of categories and difficulties: "2/5", or "-" for none.
std::string cell_text(const Tally& tally);
std::string text_or(const Object& object, std::string_view key, std::string_view otherwise);
inline std::string section(const std::string& title, const Grid& grid) {
  return "\n=== " + title + " ===\n" + render_grid(grid) + "\n";
}
}  // namespace proctor::cvdp
