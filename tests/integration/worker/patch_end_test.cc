// How a candidate patch fits, what reaches acceptance, and what is said of checks that never ran or
// that lost the tree below them: by a real worker, read from its run directories.
#include <algorithm>
#include <fstream>

#include "common/base/system_clock.h"
#include "common/score/outcome.h"
#include "common/trace/verify.h"
#include "tests/integration/worker/travelled.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Ended {
  wire::ResultMessage result;
  RunReport report;
  std::vector<TraceEvent> events;
  fs::path dir;
};

// One run of `method`, and what came of it; every one of them verifies.
Ended run_of(Scene& scene, const Method& method) {
  FakeCoordinator coordinator(scene.socket, 1);
  Child worker = scene.start_worker();
  REQUIRE(coordinator.connected());
  coordinator.assign({scene.assignment(coordinator, method, 0)}, scene.settings_digest());
  REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
  Ended out{coordinator.results.at(id(0)), {}, {}, {}};
  out.dir = unpacked(scene, coordinator, id(0));
  out.report = report_of(out.dir, out.result.report);
  out.events = events_of(out.dir, out.report);
  for (const VerifyProblem& p : verify_run(out.dir, out.result.report).problems)
    FAIL_CHECK(to_string(p));
  return out;
}

std::vector<Json> applications(const Ended& run) {
  std::vector<Json> out;
  for (const TraceEvent& e : run.events)
    if (e.type == "patch.apply") out.push_back(e.payload);
  return out;
}

const GateReport& gate(const Ended& run, std::string_view name) {
  const auto it = std::ranges::find(run.report.gates, name, &GateReport::gate);
  REQUIRE(it != run.report.gates.end());
  return *it;
}

std::string reference_of(std::string_view line) {
  return "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n-" +
         std::string(line) + "\n+echo $(($1 + $2))\n";
}

}  // namespace

TEST_SUITE("worker") {
  TEST_CASE("acceptance is repeated in fresh workspaces until one does not pass") {
    struct Row {
      const char* second;  // check; DEADLINE is a second of the clock
      RunOutcome outcome;
      std::size_t repeated;
      const char* functional;
    };
    constexpr std::string_view kFresh = "test ! -e left && touch left && ";
    const auto verdict_of = [&](const Row& row, std::int64_t seconds) {
      Scene scene;
      const std::int64_t deadline = wall_now().raw() / 1000 + seconds;
      scene.contract.checks[1] = Scene::check("flaky", "DEADLINE=" + std::to_string(deadline) +
                                                           "; " + std::string(kFresh) + row.second);
      scene.contract.rerun = 1;
      scene.settings.rerun = 2;
      const Ended run = run_of(scene, scene.method("reference", Method::Kind::kReference));
      const auto repeated = static_cast<std::size_t>(
          std::ranges::count(run.events, "acceptance.repeated", &TraceEvent::type));
      if (row.repeated != repeated) return false;
      CHECK(run.result.outcome == row.outcome);
      CHECK(gate(run, "functional").outcome == row.functional);
      CHECK(std::ranges::count(run.events, "acceptance", &TraceEvent::type) ==
            static_cast<std::ptrdiff_t>(2 * (1 + repeated)));
      for (std::uint64_t n = 1; n <= 2; ++n)
        CHECK(fs::exists(run.dir / repeated_dir(kAcceptanceDir, n) / "flaky/stdout") ==
              (n <= repeated));
      REQUIRE(run.report.checks.size() == 2);
      CHECK((run.report.checks[1].outcome == CheckOutcome::kPass) ==
            (row.outcome == RunOutcome::kSuccess));
      return true;
    };
    CHECK(verdict_of({"true", RunOutcome::kSuccess, 2, "pass"}, 0));
    CHECK(verdict_of({"false", RunOutcome::kFailure, 0, "fail"}, 0));
    // The first acceptance lasts to the deadline, and the second begins behind it.  On a slow host
    // the first may begin too late.
    const Row once{
        "test $(date +%s) -lt $DEADLINE && "
        "while test $(date +%s) -lt $DEADLINE; do sleep 0.2; done",
        RunOutcome::kFailure, 1, "fail"};
    CHECK((verdict_of(once, 10) || verdict_of(once, 40) || verdict_of(once, 100)));
  }

  TEST_CASE("a reference patch is applied by the ladder and what fits nowhere is a failure") {
    struct Row {
      const char* line;
      const char* rung;
      RunOutcome outcome;
    };
    for (const Row& row : {Row{"echo $(($1 - $2))", "exact", RunOutcome::kSuccess},
                           Row{"echo  $(($1 -  $2))", "whitespace", RunOutcome::kSuccess},
                           Row{"echo another program", "", RunOutcome::kFailure}}) {
      CAPTURE(std::string(row.line));
      Scene scene;
      scene.contract.files[1].bytes = reference_of(row.line);
      const Ended run = run_of(scene, scene.method("reference", Method::Kind::kReference));
      CHECK(run.result.outcome == row.outcome);
      CHECK(run.result.termination == Termination::kCompleted);
      CHECK_FALSE(run.result.infrastructure);
      CHECK(run.report.application.rung == row.rung);
      const std::vector<Json> told = applications(run);
      REQUIRE(!told.empty());
      CHECK(told[0].at("room") == "agent");
      const bool fits = row.outcome == RunOutcome::kSuccess;
      CHECK(told.size() == (fits ? 2 : 1));
      CHECK(gate(run, "patch").outcome == (fits ? "pass" : "fail"));
      if (fits) {
        CHECK(told[0].at("rung") == row.rung);
        CHECK(told[1].at("room") == "acceptance");
        CHECK(told[1].at("rung") == "exact");
      } else {
        CHECK(told[0].at("rung").is_null());
        CHECK(gate(run, "patch")
                  .why.starts_with("does not apply: reference patch fix.patch: apply patch: "));
        CHECK(run.result.rationale.find("; patch: refused (reference patch fix.patch") !=
              std::string::npos);
        CHECK(run.report.evidence_seq != 0);
        // Nothing was done against the rules.
        CHECK(gate(run, "safety").outcome == "pass");
      }
    }
  }

  TEST_CASE("conflict markers that an agent leaves fail the patch's gate and decide no outcome") {
    Scene scene;
    const Ended run =
        run_of(scene, scene.method("merger", Method::Kind::kCommand,
                                   "echo 'echo $(($1 + $2))' > calc.sh; "
                                   "printf 'a\\n<<<<<<< ours\\nb\\n=======\\nc\\n>>>>>>> theirs\\n'"
                                   " > notes.md; printf 'Notes\\n=======\\n' > fine.md"));
    CHECK(run.result.outcome == RunOutcome::kSuccess);
    CHECK(run.report.application.conflicts == std::vector<std::string>{"notes.md:2"});
    CHECK(gate(run, "patch").outcome == "fail");
    CHECK(gate(run, "patch").why == "conflict markers: notes.md:2");
    REQUIRE(find(run.events, "mutation") != nullptr);
    CHECK(find(run.events, "mutation")->payload.at("conflict_markers").at("count") == 1);
  }

  TEST_CASE("checks behind a setup that the patch broke are not run and say so") {
    Scene scene;
    SetupStep step;
    step.command = "sh calc.sh 1 1";
    step.cache = false;
    scene.contract.setup = {step};
    const Ended run =
        run_of(scene, scene.method("breaker", Method::Kind::kCommand, "echo 'exit 3' > calc.sh"));
    CHECK(run.result.outcome == RunOutcome::kFailure);
    REQUIRE(run.report.checks.size() == 3);
    CHECK(run.report.checks[0].id == "setup");
    CHECK(run.report.checks[0].outcome == CheckOutcome::kFail);
    for (const std::size_t i : {1U, 2U}) {
      CHECK_FALSE(run.report.checks[i].outcome);
      CHECK(run.report.checks[i].ended == "not_run");
    }
    CHECK(gate(run, "build").outcome == "fail");
    CHECK(gate(run, "functional").outcome == "not_run");
    CHECK(gate(run, "functional").why == "own-tests: did not run: setup failed");
  }

  TEST_CASE("ignored files reach acceptance by the contract's word alone") {
    for (const bool kept : {false, true}) {
      Scene scene;
      scene.write(".gitignore", "*.out\n");
      run_git(scene.repository, {"add", "-A"});
      run_git(scene.repository, {"commit", "-qm", "ignores"});
      scene.contract.repository.commit = run_git(scene.repository, {"rev-parse", "HEAD"});
      scene.contract.checks = {scene.check("there", "test -e made/a.out && ! test -e made/b.out")};
      if (kept) scene.contract.policy.ignored = {"made/a.*"};
      const Ended run = run_of(scene, scene.method("maker", Method::Kind::kCommand,
                                                   "mkdir made; echo a > made/a.out; "
                                                   "echo b > made/b.out"));
      CHECK(run.result.outcome == (kept ? RunOutcome::kSuccess : RunOutcome::kFailure));
      const Json& ignored = find(run.events, "mutation")->payload.at("ignored");
      CHECK(ignored.at("kept").at("count") == (kept ? 1 : 0));
      CHECK(ignored.at("left_out").at("count") == (kept ? 1 : 2));
    }
  }

  TEST_CASE("files outside the writable globs go by their names, however these read as globs") {
    Scene scene;
    scene.contract.policy.writable = {"calc.sh", "notes/**"};
    scene.contract.checks = {scene.check("there",
                                         "test \"$(sh calc.sh 2 3)\" = 5 && test -e notes/a && "
                                         "! test -e '**' && ! test -e 'calc?sh'")};
    const Ended run = run_of(scene, scene.method("globber", Method::Kind::kCommand,
                                                 "echo 'echo $(($1 + $2))' > calc.sh; mkdir notes; "
                                                 "echo a > notes/a; echo x > '**'; "
                                                 "echo x > 'calc?sh'"));
    CHECK(run.result.outcome == RunOutcome::kSuccess);
    CHECK(run.report.violations ==
          std::vector<std::string>{"not writable: **", "not writable: calc?sh"});
    REQUIRE(find(run.events, "mutation.restored") != nullptr);
    CHECK(find(run.events, "mutation.restored")->payload.at("listed") == Json{"**", "calc?sh"});
  }

  TEST_CASE("evidence of an agent that was never started verifies and has no empty folder") {
    Scene scene;
    scene.settings.task_caps["add"].tool_calls = 0;
    const Ended run = run_of(scene, scene.method("never", Method::Kind::kCommand, "true"));
    CHECK(run.result.termination == Termination::kBudgetExceeded);
    CHECK_FALSE(fs::exists(run.dir / "agent"));
  }

  TEST_CASE("a tree that is deleted under a check is the host's failure and nobody else's") {
    Scene scene;
    scene.settings.infrastructure_retries = 0;  // so many times it is judged again
    // Until it is told to go on it holds its workspace; then it fails, whatever it saw.
    scene.contract.checks = {
        scene.check("long",
                    "echo wait > check-began; while test \"$(cat check-began)\" != go; "
                    "do sleep 0.05; done; exit 1")};
    scene.contract.checks[0].timeout = std::chrono::seconds(120);
    FakeCoordinator coordinator(scene.socket, 1);
    Child worker = scene.start_worker();
    REQUIRE(coordinator.connected());
    coordinator.assign(
        {scene.assignment(coordinator, scene.method("noop", Method::Kind::kNoop), 0)},
        scene.settings_digest());
    const fs::path root = scene.temp.path() / "root";
    fs::path began;
    REQUIRE_MESSAGE(coordinator.until([&] {
      std::error_code ec;
      for (fs::recursive_directory_iterator it(root, ec), end; !ec && it != end; it.increment(ec))
        if (it->path().filename() == "check-began") began = it->path();
      return !began.empty();
    }),
                    scene.log());
    for (const auto& entry : fs::directory_iterator(root / "trees"))
      if (entry.is_directory()) fs::remove_all(entry.path() / "work/tests");
    std::ofstream(began) << "go\n";  // the same file, so that the overlay shows it
    REQUIRE_MESSAGE(coordinator.has_result(id(0)), scene.log());
    const wire::ResultMessage& result = coordinator.results.at(id(0));
    const fs::path dir = unpacked(scene, coordinator, id(0));
    const std::vector<TraceEvent> events = events_of(dir, report_of(dir, result.report));
    const std::string kind = find(events, "workspace.opened")->payload.at("kind").string();
    if (kind == "copy" || kind == "reflink") {
      MESSAGE("left out: workspaces are copies here, and nothing lies below them");
      return;
    }
    CHECK(result.outcome == RunOutcome::kInvalid);
    CHECK(result.termination == Termination::kCompleted);
    CHECK_FALSE(result.infrastructure);
    CHECK(result.rationale.find(not_judged("")) != std::string::npos);
    CHECK_MESSAGE(
        result.rationale.find("the tree below the workspace was changed") != std::string::npos,
        result.rationale);
  }
}
