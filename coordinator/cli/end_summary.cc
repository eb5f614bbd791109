#include "coordinator/cli/end_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "common/score/outcome.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/check_words.h"
#include "coordinator/cli/parked_advice.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kLineBytes = 600;  // a few lines of a screen

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", printable(line, kLineBytes).c_str());
}

// Of an acceptance error its check says it, in the evidence.
std::string cause_of(const FrozenCampaign& frozen, const CampaignReport& report,
                     const EndCause& cause) {
  if (!cause.why.empty()) return cause.why;
  const auto run = std::ranges::find(report.runs, cause.first, &RunRecord::name);
  return run == report.runs.end()
             ? ""
             : unfinished_check(frozen.folder.attempt(run->name, AttemptNo(run->attempts)));
}

// A few sentences of one kind.
void tell(const std::vector<std::string>& sentences, const char* kind, const char* begin = "") {
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, sentences.size()); ++i)
    say("  * " + std::string(begin) + sentences[i]);
  if (kShown < sentences.size())
    say("    and " + std::to_string(sentences.size() - kShown) + " more " + kind +
        ", in the report");
}

}  // namespace

void tell_end(const FrozenCampaign& frozen, const CampaignReport& report,
              const std::string& folder) {
  std::fputs(render_end(report).c_str(), stdout);
  std::fflush(stdout);
  const std::vector<std::string> broken = broken_tasks(report.runs);
  const std::vector<std::string> unmet = unsatisfied_methods(report);
  std::vector<std::string> early, causes;
  for (const EarlyEnd& e : early_ends(report.runs)) early.push_back(early_end_text(e, report.runs));
  for (const EndCause& c : end_causes(report))
    causes.push_back(end_cause_text(c, cause_of(frozen, report, c)));
  const std::size_t distrusted = broken.size() + early.size() + report.warnings.size() +
                                 unmet.size() + causes.size() + report.deviations.size();
  if (0 < distrusted) std::fputs("\nTo distrust\n", stderr);
  tell(broken, "broken tasks");
  tell(early, "such agents");
  tell(unmet, "such methods");
  tell(report.warnings, "warnings", "Warning: ");
  if (!causes.empty())
    say("  " + std::to_string(report.total.invalid + report.total.acceptance_error) + " of " +
        counted(report.total.ended(), "run") + " that ended came to no verdict:");
  tell(causes, "causes");
  tell(report.deviations, "deviations from what was registered");
  std::fputs("\n", stderr);
  say("To look closer: proctor report " + folder + "; for a browser: " + folder +
      "/reports/report.html");
  say("Why a run ended so: proctor explain " + folder + " RUN; its output: proctor logs " + folder +
      " RUN");
  // Those are never made again (docs/retries.md).
  const auto unjudged = std::ranges::count_if(report.runs, [](const RunRecord& run) {
    return run.state == RunRecord::State::kEnded && is_not_judged(run.outcome, run.rationale);
  });
  if (0 < unjudged)
    say(
        fmt::format("{} of the runs left a patch that this host kept from being judged: "
                    "in no rate, and no agent is drawn again; all anew: proctor copy {} NEW",
                    unjudged, folder));
  if (std::ranges::any_of(report.runs, &RunRecord::reopens))
    say("When that is mended: proctor requeue " + folder + " all --invalid, then " +
        resume_command(folder, frozen.campaign) + " (or, all anew: proctor copy " + folder +
        " NEW)");
}

}  // namespace proctor::cli
