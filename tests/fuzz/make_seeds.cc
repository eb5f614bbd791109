// Writes the inputs to begin with whose formats no editor writes: fuzz_seeds FOLDER, which is
// tests/fuzz/corpus.  Run by hand when a format changes; what it writes is in the tree.
#include <zstd.h>

#include <cstdio>

#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "common/contract/cost_model_parser.h"
#include "common/plan/registration.h"
#include "common/trace/archive.h"
#include "common/trace/manifest.h"
#include "common/trace/run_report.h"
#include "common/wire/codec.h"
#include "coordinator/core/notes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/contract/support.h"
#include "tests/unit/plan/plan_shapes.h"
#include "tests/unit/wire/samples.h"

namespace proctor::fuzz {
namespace {

fs::path corpus;

void seed(const std::string& target, const std::string& name, std::string_view bytes) {
  PROCTOR_ASSERT(bytes.size() < 4096);
  must(make_dirs(corpus / target));
  must(write_file(corpus / target / name, bytes, Durability::kLazy));
}

void wire_messages() {
  for (const wire::Message& message : wire::samples::one_of_each())
    seed("wire_message", std::string(wire::kind_name(message)), wire::encode(message));
}

// KIND-BYTE FORM LF BASE LF FILES, as bundle.cc reads it.
void bundles() {
  Diagnostics out;
  const Contract contract = test::parse(test::kContractYaml, out);
  PROCTOR_ASSERT(out.empty());
  std::string bytes = std::string(1, '\0') + canonical_form(contract) + "\n/base\n";
  for (const ReferencedFile& file : contract.files) bytes += file.bytes;
  seed("bundle", "contract", bytes);
  Method method;
  method.name = "agent";
  method.kind = Method::Kind::kCommand;
  method.command = "sh a.sh";
  method.files = {{"a.sh", 0755, "exit 0\n"}};
  seed("bundle", "method", "\x01" + canonical_form(method) + "\n\nexit 0\n");
  Settings settings;
  settings.campaign = "first";
  settings.run_cap = MicroUsd::from_micros(1'234'567);
  settings.cost_model = fallback_cost_model();
  settings.stages = {"pilot", "main"};
  settings.stage_caps["pilot"].model_calls = 3;
  settings.rates = {600, {{"acme", 60}}};
  seed("bundle", "settings", "\x02" + canonical_form(settings) + "\n\n");
}

void archives() {
  const fs::path top = scratch_folder() / "seed", packed = scratch_folder() / "seed.tar.zst";
  must(make_dirs(top / "acceptance/unit"));
  must(write_file(top / "report.json", "{}\n", Durability::kLazy));
  must(write_file(top / "acceptance/unit/stdout", "ok 1\n", Durability::kLazy));
  must(pack_archive(top, packed));
  const std::string compressed = must(read_file(packed, 1U << 20));
  seed("run_archive", "compressed", "\x01" + compressed);
  std::string tar(1U << 20, '\0');
  tar.resize(ZSTD_decompress(tar.data(), tar.size(), compressed.data(), compressed.size()));
  // The blocks of zeros at the end of a tar are not needed.
  tar.resize(tar.find_last_not_of('\0') / 512 * 512 + 512);
  seed("run_archive", "tar", '\0' + tar);
}

void reports() {
  RunReport report;
  report.campaign = "first-1";
  report.run_name = "fix-sum/agent/r1";
  report.attempt = {RunId(17), AttemptNo(2)};
  report.task = "fix-sum";
  report.method = "agent";
  report.replicate = 1;
  report.commit = report.tree = std::string(40, 'a');
  report.outcome = RunOutcome::kFailure;
  CheckReport check;
  check.id = "unit";
  check.kind = "unit";
  check.gate = "functional";
  check.outcome = CheckOutcome::kFail;
  check.reader = "tap";
  check.ended = "exited";
  check.failing = {"sums"};
  report.checks = {check};
  report.gates = {{"functional", "fail", "sums"}};
  report.files = {{"events.jsonl", 10, sha256("events")}};
  report.cost_model_version = "file";
  seed("run_report", "report", report_bytes(report));
  ManifestInputs manifest;
  manifest.tool_version = "0.1.0";
  manifest.campaign = report.campaign;
  manifest.run_name = report.run_name;
  manifest.task = report.task;
  manifest.method = report.method;
  manifest.attempt = report.attempt;
  manifest.source = "https://u:p@example.test/r.git";
  manifest.commit = manifest.tree_observed = report.commit;
  manifest.lockfiles = {{"go.sum", sha256("lock")}};
  manifest.sandbox = "bubblewrap";
  manifest.enforcement = {{"memory", "cgroup"}};
  manifest.acceptance = {{"unit", "make check"}};
  manifest.limits = {{"wall_ms", 1000}};
  manifest.seed = kPlannedSeed;
  seed("run_report", "manifest", must(canonical_json(make_manifest(manifest))));
}

void plans() {
  PlanShape shape;
  shape.strata_keys = {"language"};
  shape.tasks = {testing::task("sum", {"python"})};
  shape.methods = {"agent", "noop"};
  shape.stages = {{"main", 1}};
  seed("plan_csv", "drawn", to_csv(must(draw_plan(shape))));
  Registration r;
  r.tool_version = "0.1.0";
  r.at = WallTime(1'790'000'000'000);
  r.campaign = "first";
  r.seed = kPlannedSeed;
  r.replicates = 1;
  r.stages = {"main"};
  r.strata = {"language"};
  r.contracts = {{"sum", sha256("sum")}};
  r.methods = {{"agent", sha256("agent")}, {"noop", sha256("noop")}};
  r.envelopes = {{"global", 1000}, {"run", 10}};
  r.caps = {{"tokens", 5}};
  r.cost_model_version = "file";
  r.analysis = analysis_settings();
  seed("registration", "frozen", to_json(r));
  must(add_removal(r, "sum", "its repository is gone", r.at));
  seed("registration", "removed", to_json(r));
}

void notes() {
  OperatorFact fact;
  fact.act.kind = OperatorActKind::kRequeue;
  fact.act.runs = {RunId(3), RunId(4), RunId(9)};
  fact.act.selected = "method noop";
  fact.act.by = "ada";
  fact.act.reason = "again";
  fact.forgiven = {{RunId(3), AttemptNo(2)}};
  seed("journal_notes", "requeue", note_of(fact).detail);
  const BudgetRaised raise{
      ScopeId(3), "task:a",    MicroUsd::from_micros(1), MicroUsd::from_micros(2), "a reason",
      "ada",      WallTime(17)};
  seed("journal_notes", "raise", note_of(raise).detail);
  seed("journal_notes", "ranges", "0-2 5 7-8");
}

}  // namespace
}  // namespace proctor::fuzz

int main(int argc, char** argv) {
  using namespace proctor::fuzz;
  if (argc != 2) {
    std::fputs("fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  corpus = argv[1];
  wire_messages();
  bundles();
  archives();
  reports();
  plans();
  notes();
  return 0;
}
