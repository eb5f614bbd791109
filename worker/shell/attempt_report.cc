// AttemptRun: the two ends of a run directory, manifest.json and report.json (R043-R047, R053,
// R054).
#include "common/base/system_clock.h"
#include "common/contract/cost_model.h"
#include "common/score/gates.h"
#include "common/trace/evidence.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/run_events.h"
#include "worker/shell/served_campaigns.h"

namespace proctor {
namespace {

std::vector<GateReport> gates_of(const Contract& contract, const Verdict& verdict) {
  std::vector<GateInput> inputs;
  GateFacts facts;
  const PatchEnd& patch = verdict.application;
  bool tried = !patch.rung.empty();
  for (std::size_t i = 0; i < verdict.checks.size(); ++i) {
    const CheckReport& check = verdict.checks[i];
    tried = tried || check.outcome.has_value();
    Gate gate = Gate::kBuild;  // of the check "setup", which is no check of the contract
    for (const Check& c : contract.checks) {
      if (c.id == check.id || services_check(c.id) == check.id) gate = c.gate;
    }
    inputs.push_back({gate, check.id, check.outcome, check.why});
  }
  if (tried) facts.patch = CheckOutcome::kPass;  // checks, too, run only on an applied patch
  if (tried && !verdict.unreadable.empty()) {
    facts.patch = CheckOutcome::kFail;
    facts.patch_why = "unreadable: " + verdict.unreadable;
  }
  if (tried && facts.patch == CheckOutcome::kPass) {
    if (!patch.refused.empty()) {
      facts.patch = CheckOutcome::kFail;
      facts.patch_why = "does not apply: " + patch.refused;
    } else if (!patch.conflicts.empty()) {
      facts.patch = CheckOutcome::kFail;
      facts.patch_why = "conflict markers: " + patch.conflicts.front();
    }
  }
  facts.violations = verdict.violations;
  facts.policy_stop = verdict.termination == Termination::kPolicyStop;
  std::vector<GateReport> gates;
  for (const GateVerdict& g : gate_vector(inputs, facts)) {
    gates.push_back({std::string(to_string(g.gate)), std::string(to_string(g.outcome)), g.why});
  }
  return gates;
}

}  // namespace

AttemptRun::Answer AttemptRun::perform(const Package&) {
  watch_.enter(wire::Stage::kPackaging);
  leave_workspace(MeterPhase::kAcceptance);
  leave_rooms();
  out_.finished_ms = std::max(out_.started_ms, wall_now().raw());  // a clock may be put back
  if (!recorder_) return std::nullopt;
  meter_.stored(recorded_bytes());
  out_.usage = meter_.usage();
  const Verdict& verdict = lifecycle_.verdict();
  RunReport report;
  report.campaign = id_of(input_.campaign);
  report.run_name = input_.assignment.run_name;
  report.attempt = input_.assignment.attempt;
  report.task = contract().id;
  report.method = input_.method->name;
  report.replicate = input_.assignment.replicate;
  report.contract = contract().digest;
  report.method_digest = input_.method->digest;
  report.commit = snapshot_.commit;
  report.tree = snapshot_.tree;
  report.outcome = verdict.outcome;
  report.termination = verdict.termination;
  report.rationale = verdict.rationale;
  report.evidence_seq = verdict.evidence;
  report.checks = verdict.checks;
  report.gates = gates_of(contract(), verdict);
  report.application = verdict.application;
  report.violations = verdict.violations;
  if (!input_.settings->seed_deviation.empty()) {
    report.deviations.push_back("seed " + std::to_string(input_.settings->seed) + ": " +
                                input_.settings->seed_deviation);
  }
  report.replayable = !network_used_;
  report.usage = out_.usage;
  report.failed_cycles = out_.usage.failed_cycles;
  report.cost = price(input_.settings->cost_model, out_.usage);
  report.cost_model = input_.settings->cost_model.digest;
  report.cost_model_version = input_.settings->cost_model.version;
  report.started_ms = out_.started_ms;
  report.finished_ms = out_.finished_ms;
  const Result<Digest> digest =
      when_there_is_room<Digest>("the report of attempt " + to_string(report.attempt), patience(),
                                 [&] { return recorder_->finish(report); });
  if (digest.ok()) {
    out_.report = *digest;
    out_.packaged = true;
  } else {
    broken_ = digest.error();
  }
  return std::nullopt;
}

// What the archive will hold but for report.json, before compression: report and result must name
// the same usage, and a report cannot hold its own size.
std::uint64_t AttemptRun::recorded_bytes() const {
  std::uint64_t total = patch_.diff.size();
  const auto entries = list_tree(run_dir());
  if (!entries.ok()) return total;
  total = 0;
  for (const auto& entry : *entries) total += entry.bytes;
  return total;
}

}  // namespace proctor
