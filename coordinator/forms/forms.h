#pragma once
// A report as one text for another program or page: a test report for whatever gates changes, a
// summary for the page of a change, a badge (docs/forms.md).  Pure: the same report gives the same
// bytes.
#include <map>
#include <string>
#include <string_view>

#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// What a test case of JUnit's form is: a run, or a task with all its runs of a method.
enum class JunitCases : std::uint8_t { kRuns, kTasks };
// A report with more runs has a case per task; what is beyond so many cases is left out, counted.
inline constexpr std::size_t kJunitCasesMax = 100'000;
// One suite per method.  A run that passed its checks and not each gate is a failure of
// type "unsatisfied": a gate must not let it through.
std::string render_junit(const CampaignReport& report, JunitCases cases = JunitCases::kRuns);

inline constexpr std::size_t kMarkdownBytes = 60'000;
// GitHub's Markdown, at most kMarkdownBytes.  Requires: the report has its analysis.
std::string render_markdown(const CampaignReport& report);

// reports/run_records.jsonl (R191): a line per run in the plan's order, by what the journal has of
// it; schemas/run_record.schema.json.  `contracts`: their digests by task, as registered.
std::string render_run_records(const CampaignReport& report,
                               const std::map<std::string, Digest>& contracts);

// The method that a badge without a name is of: the first that the plan compares, else the first.
// Empty: there is none.
std::string badge_method(const CampaignReport& report);
// "my-agent 36 % [13-77] of 7 tasks".  Grey while runs are open or nothing is known; never green or
// red.
std::string render_badge(const CampaignReport& report, std::string_view method);
}  // namespace proctor
