#include "sample_run.h"

#include <doctest/doctest.h>

#include "common/trace/judgement.h"
#include "common/trace/payloads.h"

namespace proctor::testing {

RunReport sample_report() {
  RunReport r;
  r.campaign = "quickstart-1";
  r.run_name = "fix-parser/reference/r1";
  r.attempt = {RunId(17), AttemptNo(2)};
  r.task = "fix-parser";
  r.method = "reference";
  r.replicate = 1;
  r.contract = sha256("contract");
  r.method_digest = sha256("method");
  r.commit = "0123456789abcdef0123456789abcdef01234567";
  r.tree = "89abcdef0123456789abcdef0123456789abcdef";
  r.outcome = RunOutcome::kSuccess;
  r.rationale = "the method ended by itself";
  r.evidence_seq = 2;
  CheckReport build{
      .id = "build", .kind = "build", .gate = "build", .outcome = CheckOutcome::kPass};
  build.command = "make";
  build.timeout_ms = 60'000;
  build.reader = "exit_code";
  build.ended = "exited";
  build.wall_ms = 812;
  CheckReport unit{
      .id = "unit/tests", .kind = "unit", .gate = "functional", .outcome = CheckOutcome::kPass};
  unit.command = "make check";
  unit.timeout_ms = 60'000;
  unit.reader = "tap";
  unit.ended = "exited";
  unit.passed = 3;
  unit.skipped = 1;
  r.checks = {build, unit};
  r.gates = {{"patch", "pass", ""},
             {"build", "pass", ""},
             {"functional", "pass", ""},
             {"safety", "pass", ""}};
  r.usage = {.setup_ms = 100, .agent_ms = 2000, .acceptance_ms = 900, .cpu_ms = 1500};
  r.cost = {.model = MicroUsd::from_micros(0),
            .execution = MicroUsd::from_micros(51),
            .human = MicroUsd::from_micros(0),
            .overhead = MicroUsd::from_micros(7)};
  r.cost_model = sha256("prices");
  r.cost_model_version = "file";
  r.started_ms = 1'770'000'000'000;
  r.finished_ms = 1'770'000'003'000;
  return r;
}

ManifestInputs sample_inputs() {
  const RunReport r = sample_report();
  ManifestInputs m;
  m.tool_version = "0.1.0";
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
  m.source = "https://user:token@example.org/parser.git";
  m.commit = r.commit;
  m.tree_expected = m.tree_observed = r.tree;
  m.submodules = {{"third_party/x", "fedcba9876543210fedcba9876543210fedcba98"}};
  m.lockfiles = {{"poetry.lock", sha256("lock")}};
  m.sandbox = "bubblewrap";
  m.enforcement = {{"memory", "cgroup"}, {"wall", "supervisor"}};
  m.variables = {{"PYTHONHASHSEED", "0"}};
  m.secrets = {"REGISTRY_TOKEN"};
  m.locale = "C.UTF-8";
  m.timezone = "UTC";
  m.toolchains = {{"/opt/go", "/usr/local/go", "go version go1.22.1"}};
  m.package_managers = {{"pip", "24.0"}};
  m.setup = {"pip install -e ."};
  m.agent = "reference patch";
  m.acceptance = {{"build", "make"}, {"unit/tests", "make check"}};
  m.limits = {{"memory_bytes", 2147483648}, {"wall_ms", 1800000}};
  m.network_setup = true;
  m.seed = 20260307;
  m.run_seed = 3401266767;
  m.started_ms = r.started_ms;
  m.cpu_class = "x86_64, 2 cores";
  m.memory_class = "8 GiB";
  m.kernel = "6.1.0";
  m.os = "Debian GNU/Linux 12";
  return m;
}

Json sample_manifest() {
  return make_manifest(sample_inputs());
}

Digest write_sample_run(const fs::path& dir, const std::optional<JudgeRules>& rules) {
  std::uint64_t now = 1000;
  Result<RunRecorder> made = RunRecorder::create(dir, [&now] { return now += 10; });
  REQUIRE(made.ok());
  RunRecorder run = std::move(made).value();
  ManifestInputs manifest = sample_inputs();
  manifest.rubric = rules;
  REQUIRE(run.write_manifest(make_manifest(manifest)).ok());
  REQUIRE(run.event("agent.start", Actor::kHarness, {{"command", "true"}}).ok());
  REQUIRE(run.event("agent.end", Actor::kHarness, {{"exit_code", 0}}).ok());
  REQUIRE(run.write_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n").ok());
  RunReport report = sample_report();
  for (const CheckReport& check : report.checks) {
    const Result<fs::path> folder = run.check_dir(check.id);
    REQUIRE(folder.ok());
    REQUIRE(write_file(*folder / "stdout", "ok\n", Durability::kLazy).ok());
    REQUIRE(write_file(*folder / "stderr", "", Durability::kLazy).ok());
    if (check.reader == "tap")
      REQUIRE(write_file(*folder / "results", "1..1\nok 1 - a\n", Durability::kLazy).ok());
    const Json told = rules
                          ? events::kAcceptance.json({check, report.started_ms, report.finished_ms})
                          : to_json(check);
    REQUIRE(run.event("acceptance", Actor::kHarness, told).ok());
  }
  if (rules) {
    REQUIRE(run.flush().ok());
    REQUIRE(judge_report(report, dir).ok());
  }
  const Result<Digest> digest = run.finish(report);
  REQUIRE(digest.ok());
  return *digest;
}

}  // namespace proctor::testing
