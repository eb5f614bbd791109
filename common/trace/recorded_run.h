#pragma once
// A run whose recorded patch is judged again: the facts of its agent's phase, which is not done
// again, and the old verdict beside the new one (docs/replay.md; EVIDENCE 6).  Pure; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "common/trace/payloads.h"
#include "common/trace/run_report.h"

namespace proctor {
// The facts travel beside the patch, in a file of a method of kind recorded (campaign.h).
struct RecordedRun {
  Digest report;  // the report.json's that they come from
  Digest patch;   // the patch's, as that report names it
  RunOutcome outcome = RunOutcome::kFailure;
  std::string rung;    // the patch's, as the report has it; empty: there was none to apply
  std::string misfit;  // why the patch that the method handed in fitted by no rung; empty: it did
  events::Mutation mutation;  // as the run's trace has it, without the cost of its extraction
  // Alerts of its agent's phase that are violations: it broke its policy, whoever judges its patch.
  std::vector<Json> alerts{};
};
void fields(auto& v, Is<RecordedRun> auto& r) {
  v.follows("format", "proctor-recorded-1");
  v("report", r.report);
  v("patch", r.patch);
  v("outcome", r.outcome);
  v("rung", r.rung);
  v("misfit", r.misfit);
  v("mutation", r.mutation);
  v("alerts", r.alerts, {.items = kReportItems, .optional = true});
}

// `digest`: of the report; `mutation` and `alerts`: of the run's trace.
RecordedRun recorded_run(const RunReport& report, const Digest& digest, events::Mutation mutation,
                         std::vector<Json> alerts = {});
// kInvalid names the field.
Result<RecordedRun> parse_recorded_run(std::string_view bytes);

struct VerdictDifference {
  std::string what;     // "outcome", "check tests", "gate patch", "tag test.assertion"
  std::string was, is;  // words of outcomes; "absent": that side has no such one; of a tag "there"
  std::string why;      // the new one's, for people; may be empty
  friend bool operator==(const VerdictDifference&, const VerdictDifference&) = default;
};
void fields(auto& v, Is<VerdictDifference> auto& d) {
  v("what", d.what);
  v("was", d.was);
  v("is", d.is);
  v("why", d.why);
}
// The outcome first, then checks, gates and tags.  How the agent ended is no part of a verdict, and
// violations of its phase cannot be seen again (see left_to_agent()): where there are any the gate
// safety is not compared.  Tags of that gate, and of the run as a whole, are not either.
std::vector<VerdictDifference> differences(const RunReport& was, const RunReport& is);
// Violations of the old report that only its agent's phase shows.
std::vector<std::string> left_to_agent(const RunReport& was, const RunReport& is);
// "reproduced", or "diverged: tests was pass, is fail (t7)": checks that differ, else the rest.
std::string verdict_line(const std::vector<VerdictDifference>& differences);
}  // namespace proctor
