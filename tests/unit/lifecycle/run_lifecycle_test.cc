// The course of an attempt, and what ends it before it is judged.
#include "common/base/text.h"
#include "common/score/outcome.h"
#include "tests/unit/lifecycle/lifecycle_world.h"

using namespace proctor;
using namespace proctor::lifecycle_test;

TEST_SUITE("lifecycle") {
  TEST_CASE("an attempt without trouble walks every phase once and in order") {
    World world(plan_of(1, 2));
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kSuccess);
    CHECK(v.termination == Termination::kCompleted);
    CHECK_FALSE(v.infrastructure);
    CHECK(v.evidence == 9);
    std::vector<std::size_t> order;
    for (const LifecycleCommand& c : world.log) {
      if (!std::holds_alternative<RecordStage>(c) &&
          !std::holds_alternative<RecordTermination>(c)) {
        order.push_back(c.index());
      }
    }
    const std::vector<LifecycleCommand> expected = {TakeSnapshot{},
                                                    WriteManifest{},
                                                    OpenWorkspace{},
                                                    RunSetup{},
                                                    GiveBriefing{},
                                                    RunAgent{},
                                                    ExtractPatch{},
                                                    OpenWorkspace{},
                                                    ApplyPatch{},
                                                    RestoreProtected{},
                                                    PlaceAcceptanceFiles{},
                                                    RunSetup{},
                                                    RunCheck{},
                                                    RunCheck{},
                                                    Package{}};
    REQUIRE(order.size() == expected.size());
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == expected[i].index());
  }

  TEST_CASE("every stage transition is recorded and they chain") {
    World world(plan_of(0, 1));
    world.finish();
    std::string at = "assigned";
    std::vector<std::string> stages;
    for (const LifecycleCommand& c : world.log) {
      if (const auto* s = std::get_if<RecordStage>(&c)) {
        CHECK(s->from == at);
        at = s->to;
        stages.push_back(at);
      }
    }
    CHECK(stages == std::vector<std::string>{"prepare", "brief", "agent", "extract", "acceptance",
                                             "package"});
  }

  TEST_CASE("the outcome of a run follows from its checks as R060 has it") {
    using O = CheckOutcome;
    struct Row {
      O first, second;
      RunOutcome expected;
    };
    const Row rows[] = {
        {O::kPass, O::kPass, RunOutcome::kSuccess},
        {O::kPass, O::kFail, RunOutcome::kFailure},
        {O::kFail, O::kPass, RunOutcome::kFailure},
        {O::kFail, O::kFail, RunOutcome::kFailure},
        {O::kPass, O::kError, RunOutcome::kAcceptanceError},
        {O::kError, O::kPass, RunOutcome::kAcceptanceError},
        {O::kFail, O::kError, RunOutcome::kAcceptanceError},
        {O::kError, O::kFail, RunOutcome::kAcceptanceError},
        {O::kError, O::kError, RunOutcome::kAcceptanceError},
    };
    for (const Row& row : rows) {
      World world(plan_of(0, 2));
      world.until<RunCheck>();
      world.feed(ended(row.first, "first"));
      REQUIRE(world.pending<RunCheck>());  // a failed check does not spare the next one
      world.feed(ended(row.second, "second"));
      const Verdict& v = world.finish();
      CHECK(v.outcome == row.expected);
      CHECK(v.termination == Termination::kCompleted);
      CHECK_FALSE(v.infrastructure);
      REQUIRE(v.checks.size() == 2);
      CHECK(v.checks[0].outcome == row.first);
      CHECK(v.checks[1].why == "second");
    }
  }

  TEST_CASE("an identity other than the contract's is invalid and no agent starts") {
    struct Row {
      const char* expected_tree;
      SnapshotReady seen;
    };
    const Row rows[] = {{"", {"0ther", kTree}}, {kTree, {kCommit, "0ther"}}, {"", {kCommit, ""}}};
    for (const Row& row : rows) {
      LifecyclePlan plan = plan_of(0, 1);
      plan.tree = row.expected_tree;
      World world(plan);
      world.feed(row.seen);
      CHECK(world.pending<WriteManifest>());  // what was observed is on record
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK_FALSE(v.infrastructure);
      CHECK(v.rationale.substr(0, 9) == "identity:");
      CHECK(count<RunAgent>(world.log) == 0);
      CHECK(count<RecordTermination>(world.log) == 1);
    }
  }

  TEST_CASE("a host that fails before the agent started is infrastructure") {
    const auto check = [](World& world) {
      world.feed(StepFailed{error(Errc::kUnavailable), 4});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kInfrastructure);
      CHECK(v.infrastructure);
      CHECK_FALSE(v.checks[0].outcome.has_value());
    };
    {
      World world(plan_of(1, 1));
      check(world);  // snapshot
    }
    {
      World world(plan_of(1, 1));
      world.until<WriteManifest>();
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<OpenWorkspace>();
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<RunSetup>();
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<GiveBriefing>();
      check(world);
    }
  }

  TEST_CASE("a host that fails under the agent is infrastructure too and never a failure") {
    const auto check = [](World& world) {
      world.feed(StepFailed{error(Errc::kUnavailable), 4});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kInfrastructure);
      CHECK(v.infrastructure);
      CHECK(v.evidence == 4);
    };
    {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      check(world);
    }
    {
      World world(plan_of(0, 1));
      world.until<ExtractPatch>();
      check(world);
    }
  }

  TEST_CASE("a failure of acceptance is judged again from the same patch and asks for no agent") {
    // Each step of acceptance, and how to come to it.
    using To = void (*)(World&);
    const To steps[] = {[](World& w) {
                          if (count<ExtractPatch>(w.log) != 0) return;
                          w.until<ExtractPatch>();
                          w.feed(w.success());
                        },
                        [](World& w) { w.until<ApplyPatch>(); },
                        [](World& w) { w.until<RestoreProtected>(); },
                        [](World& w) { w.until<PlaceAcceptanceFiles>(); },
                        [](World& w) {
                          w.until<PlaceAcceptanceFiles>();
                          w.until<RunSetup>();
                        },
                        [](World& w) { w.until<RunCheck>(); }};
    for (const To to : steps) {
      LifecyclePlan plan = plan_of(1, 2);
      plan.judged_again = 2;
      {
        World world(plan);
        to(world);
        world.feed(StepFailed{error(Errc::kUnavailable), 4});
        to(world);
        world.feed(StepFailed{error(Errc::kExhausted), 5});
        const Verdict& v = world.finish();
        CHECK(v.outcome == RunOutcome::kSuccess);
        CHECK(v.termination == Termination::kCompleted);
        CHECK(v.evidence == 9);
        CHECK(v.violations.empty());
        CHECK(count<RunAgent>(world.log) == 1);
        CHECK(count<ExtractPatch>(world.log) == 1);
        CHECK(count<JudgeAgain>(world.log) == 2);
      }
      World world(plan);
      for (std::uint64_t evidence = 4; evidence <= 6; ++evidence) {
        to(world);
        world.feed(StepFailed{error(Errc::kUnavailable), evidence});
      }
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kCompleted);  // the agent's end
      CHECK_FALSE(v.infrastructure);
      CHECK(v.evidence == 6);
      CHECK(v.facts.not_judged);
      CHECK(count<RunAgent>(world.log) == 1);
    }
  }

  TEST_CASE("what acceptance said before it was begun again is not said twice") {
    LifecyclePlan plan = plan_of(0, 2);
    plan.judged_again = 1;
    World world(plan);
    world.until<ExtractPatch>();
    PatchExtracted patch;
    patch.refused = {"socket"};
    patch.outside_writable = {"docs/a"};
    world.feed(patch);
    for (int tries = 0; tries < 2; ++tries) {
      world.until<ApplyPatch>();
      world.feed(PatchRefused{"no"});
      world.feed(ProtectedRestored{{"tests/a"}});
      world.until<RunCheck>();
      world.feed(ended(CheckOutcome::kPass, ""));
      if (tries == 0) world.feed(StepFailed{error(Errc::kUnavailable), 4});
    }
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kFailure);
    CHECK(v.violations.size() == 4);  // one of each, and that it does not apply
    CHECK(v.checks.size() == 2);
  }

  TEST_CASE("acceptance that passed is repeated, and the first that does not pass decides") {
    LifecyclePlan plan = plan_of(1, 2);
    plan.rerun = 2;
    using O = CheckOutcome;
    for (const auto& [fails_in, outcome, expected, repeated] :
         {std::tuple{3, O::kFail, RunOutcome::kSuccess, 2},
          std::tuple{0, O::kFail, RunOutcome::kFailure, 0},
          std::tuple{1, O::kFail, RunOutcome::kFailure, 1},
          std::tuple{2, O::kFail, RunOutcome::kFailure, 2},
          std::tuple{1, O::kError, RunOutcome::kAcceptanceError, 1}}) {
      CAPTURE(fails_in);
      World world(plan);
      world.until<ExtractPatch>();
      PatchExtracted patch;
      patch.outside_writable = {"docs/a"};
      world.feed(patch);
      for (int n = 0; n <= repeated; ++n) {
        world.until<RestoreProtected>();
        CHECK(std::get<RestoreProtected>(world.log.back()).also ==
              std::vector<std::string>{"docs/a"});
        world.feed(ProtectedRestored{{"tests/a"}});
        world.until<RunCheck>();
        CheckEnded first = ended(O::kPass, "");
        if (n == 0) first.forbidden = {"call: mount"};
        world.feed(first);
        world.feed(ended(n == fails_in ? outcome : O::kPass, std::to_string(n)));
      }
      const Verdict& v = world.finish();
      CHECK(v.outcome == expected);
      CHECK(v.violations.size() == 3);  // one of each, whatever the repetition
      REQUIRE(v.checks.size() == 2);
      CHECK(v.checks[1].why == std::to_string(repeated));
      CHECK(count<RepeatAcceptance>(world.log) == static_cast<std::size_t>(repeated));
      const std::string told = counted(static_cast<std::uint64_t>(repeated), "time") +
                               " and did not pass in run " + std::to_string(1 + repeated) + " of 3";
      const bool is_torn = expected != RunOutcome::kSuccess && 0 < repeated;
      CHECK((v.rationale.find(told) != std::string::npos) == is_torn);
      CHECK((v.rationale.find("acceptance passed") != std::string::npos) == is_torn);
      CHECK(v.facts.violations == 3);
      CHECK(v.rationale.ends_with("; violations: 3 (" + v.violations.front() + ")"));
      CHECK(count<RunAgent>(world.log) == 1);
      CHECK(count<RecordTermination>(world.log) == 1);
    }
  }

  TEST_CASE("a host that fails in a repetition has all of them judged again") {
    LifecyclePlan plan = plan_of(0, 1);
    plan.rerun = 1;
    plan.judged_again = 1;
    World world(plan);
    world.until<RunCheck>();
    world.feed(ended(CheckOutcome::kPass, ""));
    world.until<RunCheck>();
    world.feed(StepFailed{error(Errc::kUnavailable), 4});
    CHECK(world.finish().outcome == RunOutcome::kSuccess);
    CHECK(count<RepeatAcceptance>(world.log) == 2);
    CHECK(count<RunCheck>(world.log) == 4);
  }

  TEST_CASE("a worker that leaves under a check lets another one try") {
    World world(plan_of(0, 1));
    world.until<RunCheck>();
    world.feed(RunCancelAsked{"the worker was stopped", true, 3});
    CHECK(world.finish().infrastructure);
    CHECK(world.lifecycle.verdict().termination == Termination::kInfrastructure);
  }

  TEST_CASE("an end before the agent points to the event behind the manifest") {
    for (const LifecycleEvent& first : {LifecycleEvent(StepFailed{error(Errc::kUnavailable), 0}),
                                        LifecycleEvent(SnapshotReady{"another", kTree}),
                                        LifecycleEvent(SnapshotReady{kCommit, ""})}) {
      World world(plan_of(0, 1));
      world.feed(first);
      REQUIRE(world.pending<WriteManifest>());
      CHECK_FALSE(std::get<WriteManifest>(world.log.back()).against.empty());
      world.feed(StepDone{1});
      CHECK(world.finish().evidence == 1);
    }
  }

  TEST_CASE("input that is wrong on every host makes no new attempt") {
    {
      World world(plan_of(0, 1));  // a source that is none
      world.feed(StepFailed{error(Errc::kInvalid), 0});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK_FALSE(v.infrastructure);
    }
    {
      World world(plan_of(0, 1));  // there is no reference patch
      world.until<RunAgent>();
      world.feed(StepFailed{error(Errc::kInvalid), 3});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK_FALSE(v.infrastructure);
      CHECK(v.rationale == "agent: it broke");
    }
    {
      LifecyclePlan plan = plan_of(0, 1);
      plan.judged_again = 1;
      World world(plan);  // the extracted patch does not apply to the fresh workspace
      world.until<ApplyPatch>();
      world.feed(StepFailed{error(Errc::kInvalid), 3});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK_FALSE(v.infrastructure);
    }
  }

  TEST_CASE("a recorded patch is judged without an agent's room, unless setup has to be seen") {
    for (const std::size_t setup : {std::size_t{0}, std::size_t{1}}) {
      LifecyclePlan plan = plan_of(setup, 1);
      plan.recorded = true;
      World world(plan);
      CHECK(world.finish().outcome == RunOutcome::kSuccess);
      CHECK(count<RunAgent>(world.log) == 1);
      CHECK(count<ExtractPatch>(world.log) == 1);
      CHECK(count<OpenWorkspace>(world.log) == 1 + setup);
      CHECK(count<RunSetup>(world.log) == 2 * setup);
    }
  }
}
