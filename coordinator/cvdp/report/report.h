#pragma once
// The reports every CVDP user knows: report.json out of raw_result.json, report.txt out of
// report.json, and both of several samples; the same bytes as upstream's.  Records that upstream
// cannot report (no difficulty, no number in the category) are left out and named.
// Pure: the time is the caller's.  Any thread.  Source: CVDP 9.1-9.7.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/pycompat/values.h"

namespace proctor::cvdp {

// What raw_result.json does not say; the members of "metadata" in their order.
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

}  // namespace proctor::cvdp
