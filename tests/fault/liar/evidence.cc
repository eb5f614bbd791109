#include "tests/fault/liar/evidence.h"

#include "common/base/system_clock.h"
#include "common/trace/archive.h"
#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/judgement.h"
#include "common/trace/manifest.h"
#include "coordinator/shell/worker_files.h"

namespace proctor::liar {
namespace {

// Of the one check of the contract, as the outcome needs it.
std::vector<CheckReport> checks_of(RunOutcome outcome) {
  if (outcome == RunOutcome::kInvalid) return {};
  CheckReport check{.id = "sums", .kind = "unit", .gate = "functional"};
  check.command = "sh tests/t.sh";
  check.timeout_ms = 20'000;
  check.ended = "exited";
  check.outcome = outcome == RunOutcome::kSuccess   ? CheckOutcome::kPass
                  : outcome == RunOutcome::kFailure ? CheckOutcome::kFail
                                                    : CheckOutcome::kError;
  return {check};
}

RunReport report_of(const Played& played, const Claim& claim) {
  const PlanRow& row = played.plan.row(claim.attempt.run);
  const PlanTask& task = played.plan.task(claim.attempt.run);
  const Method* method = played.campaign.find_method(played.plan.method(claim.attempt.run));
  RunReport r;
  r.campaign = claim.campaign;
  r.run_name = played.plan.run_name(claim.attempt.run);
  r.attempt = claim.attempt;
  r.task = task.id;
  r.method = method->name;
  r.replicate = row.replicate;
  r.contract = task.digest;
  r.method_digest = method->digest;
  r.commit = r.tree = std::string(40, '1');
  r.outcome = claim.outcome;
  r.checks = checks_of(claim.outcome);
  r.rationale = claim.rationale;
  r.usage = claim.usage;
  r.cost = price(played.campaign.cost_model, claim.usage);
  r.cost_model = played.campaign.cost_model.digest;
  r.cost_model_version = played.campaign.cost_model.version;
  r.started_ms = wall_now().raw() - 5;
  r.finished_ms = wall_now().raw();
  return r;
}

Json manifest_of(const RunReport& r, const JudgeRules* rules) {
  ManifestInputs m;
  m.tool_version = "liar";
  m.campaign = r.campaign;
  m.run_name = r.run_name;
  m.task = r.task;
  m.method = r.method;
  m.attempt = r.attempt;
  m.replicate = r.replicate;
  m.contract = r.contract;
  m.method_digest = r.method_digest;
  m.cost_model = r.cost_model;
  m.cost_model_version = r.cost_model_version;
  m.source = "../repo";
  m.commit = r.commit;
  m.tree_observed = r.tree;
  m.sandbox = "bubblewrap";
  m.locale = "C.UTF-8";
  m.timezone = "UTC";
  m.acceptance = {{"sums", "sh tests/t.sh"}};
  m.seed = kPlannedSeed;
  m.started_ms = r.started_ms;
  m.cpu_class = "none";
  m.memory_class = "none";
  if (rules != nullptr) m.rubric = *rules;
  return make_manifest(m);
}

}  // namespace

Result<Evidence> make_evidence(const Played& played, const Claim& claim, const fs::path& scratch) {
  const fs::path dir = scratch / "run", file = scratch / "run.tar.zst";
  PROCTOR_CHECK_OK(remove_tree(scratch));
  PROCTOR_CHECK_OK(make_dirs(scratch));
  RunReport report = report_of(played, claim);
  const CampaignRules rules(played.campaign);
  PROCTOR_TRY(RunRecorder recorder, RunRecorder::create(dir));
  PROCTOR_CHECK_OK(
      recorder.write_manifest(manifest_of(report, claim.without_rules ? nullptr : rules(report))));
  PROCTOR_TRY([[maybe_unused]] const std::uint64_t seq,
              recorder.event("agent.start", Actor::kHarness, Json{{"why", claim.rationale}}));
  for (const CheckReport& check : report.checks) {
    PROCTOR_TRY([[maybe_unused]] const std::uint64_t at,
                recorder.event("acceptance", Actor::kHarness, to_json(check)));
  }
  PROCTOR_CHECK_OK(recorder.write_patch("of " + claim.rationale + "\n"));
  PROCTOR_CHECK_OK(recorder.flush());
  PROCTOR_CHECK_OK(judge_report(report, dir));
  Evidence out;
  PROCTOR_TRY(out.result.report, recorder.finish(report));
  PROCTOR_TRY(const ArchiveInfo info, pack_archive(dir, file));
  PROCTOR_TRY(out.archive, read_file(file, std::size_t{1} << 20));
  PROCTOR_TRY(out.files, digests_of(dir));
  out.result.epoch = claim.epoch;
  out.result.attempt = claim.attempt;
  out.result.outcome = claim.outcome;
  out.result.rationale = claim.rationale;
  out.result.archive = info.digest;
  out.result.archive_bytes = info.bytes;
  out.result.usage = claim.usage;
  out.result.started_ms = report.started_ms;
  out.result.finished_ms = report.finished_ms;
  PROCTOR_CHECK_OK(remove_tree(scratch));
  return out;
}

Result<std::map<std::string, Digest>> digests_of(const fs::path& dir) {
  PROCTOR_TRY(const std::vector<TreeEntry> entries, list_tree(dir));
  std::map<std::string, Digest> out;
  for (const TreeEntry& e : entries) {
    if (e.folder) continue;
    PROCTOR_TRY(const EvidenceFile file, hash_file(dir, e.path));
    out[e.path] = file.digest;
  }
  return out;
}

}  // namespace proctor::liar
