#include "coordinator/cli/end_summary.h"

#include <algorithm>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "coordinator/aggregate/end_causes.h"
#include "coordinator/cli/check_words.h"
#include "coordinator/cli/parked_advice.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kShown = 5;

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", printable(line, 4 * limits::kDetailBytes).c_str());
}

// Of an acceptance error its check says it, in the evidence.
std::string cause_of(const FrozenCampaign& frozen, const CampaignReport& report,
                     const EndCause& cause) {
  if (!cause.why.empty()) return cause.why;
  const auto run = std::ranges::find(report.runs, cause.first, &RunRecord::name);
  const std::string check =
      run == report.runs.end()
          ? std::string()
          : unfinished_check(frozen.folder.attempt(run->name, AttemptNo(run->attempts)));
  return check.empty() ? "a check could not be completed" : check;
}

}  // namespace

void tell_end(const FrozenCampaign& frozen, const CampaignReport& report,
              const std::string& folder) {
  for (const std::string& warning : report.warnings) say("Warning: " + warning + ".");
  const std::vector<std::string> broken = broken_tasks(report);
  for (std::size_t i = 0; i < std::min(kShown, broken.size()); ++i) say(broken[i]);
  if (kShown < broken.size())
    say("and " + std::to_string(broken.size() - kShown) + " more broken tasks, in the report");
  if (!broken.empty()) say("To look at one: proctor logs " + folder + " RUN --phase checks");
  for (const EarlyEnd& early : early_ends(report.runs)) {
    say(early_end_text(early, report.runs));
    say("What it said: proctor logs " + folder + " " + report.runs[early.first].name);
  }
  const std::vector<EndCause> causes = end_causes(report);
  if (causes.empty()) return;
  const std::uint64_t runs = report.total.invalid + report.total.acceptance_error;
  say(std::to_string(runs) + " of " + std::to_string(report.total.ended()) +
      " runs that ended came to no verdict:");
  for (std::size_t i = 0; i < std::min(kShown, causes.size()); ++i) {
    const EndCause& c = causes[i];
    say("  " + std::to_string(c.runs) + " " + std::string(to_string(c.outcome)) + " of " +
        c.method + ": " + cause_of(frozen, report, c) + "; " + c.first);
  }
  if (kShown < causes.size())
    say("  and " + std::to_string(causes.size() - kShown) + " more causes, in reports/runs.csv");
  say("Why: proctor explain " + folder + " RUN; what was said: proctor logs " + folder + " RUN.");
  if (0 < report.total.invalid)
    say("When that is mended: proctor requeue " + folder + " all --invalid, then " +
        resume_command(folder, frozen.campaign) +
        " (within the registered attempts; else proctor copy " + folder +
        " NEW makes a fresh campaign)");
}

}  // namespace proctor::cli
