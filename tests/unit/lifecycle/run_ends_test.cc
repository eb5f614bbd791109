// How an attempt ends: limits, cancellation, setup, violations.
#include "common/base/limits.h"
#include "common/score/outcome.h"
#include "tests/unit/lifecycle/lifecycle_world.h"
#include "worker/core/run_meter.h"

using namespace proctor;
using namespace proctor::lifecycle_test;

TEST_SUITE("lifecycle") {
  TEST_CASE("an agent that ran into a limit is still judged by the tree it left") {
    struct Row {
      ProgramEnd exec;
      Termination expected;
    };
    const Row rows[] = {{exec(End::kExited, 0), Termination::kCompleted},
                        {exec(End::kExited, 3), Termination::kCompleted},
                        {exec(End::kExited, 127), Termination::kCompleted},
                        {exec(End::kSignalled), Termination::kCompleted},
                        {exec(End::kTimedOut), Termination::kAgentTimeout},
                        {exec(End::kMemory), Termination::kResourceLimit},
                        {exec(End::kDisk), Termination::kResourceLimit},
                        {exec(End::kCpu), Termination::kResourceLimit}};
    for (const Row& row : rows) {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      world.feed(AgentEnded{true, row.exec, 7});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kSuccess);
      CHECK(v.termination == row.expected);
      CHECK(v.evidence == 7);
      CHECK(count<RunCheck>(world.log) == 1);
    }
  }

  TEST_CASE("the rationale of a time-out names the ceiling and what was observed") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    world.feed(AgentEnded{true, exec(End::kTimedOut), 7});
    CHECK(world.finish().rationale == "the agent was stopped after 1001 ms; its limit is 1000 ms");
  }

  TEST_CASE("the rationale of a CPU limit names it") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    world.feed(AgentEnded{true, exec(End::kCpu), 7});
    CHECK(world.finish().rationale == "the agent was stopped at its CPU limit");
  }

  TEST_CASE("only the campaign's word makes an exit code an overload") {
    LifecyclePlan plan = plan_of(0, 1);
    plan.overload_exit = 75;
    const auto verdict = [&](int code, End end = End::kExited, bool budget = false) {
      World world(plan);
      world.until<RunAgent>();
      if (budget) world.feed(BudgetReached{"usd", 5});
      world.feed(AgentEnded{true, exec(end, code), 7});
      return world.finish();
    };
    const Verdict full = verdict(75);
    CHECK(full.overload);
    CHECK(full.infrastructure);
    CHECK(full.outcome == RunOutcome::kInvalid);
    CHECK(full.termination == Termination::kModelOverloaded);
    CHECK(full.rationale == "a provider of models had no room: the agent ended with exit 75");
    CHECK(full.evidence == 7);
    for (const Verdict& judged :
         {verdict(74), verdict(0), verdict(75, End::kSignalled), verdict(75, End::kExited, true)}) {
      CHECK_FALSE(judged.overload);
      CHECK_FALSE(judged.infrastructure);
      CHECK(judged.outcome == RunOutcome::kSuccess);
    }
    plan.overload_exit = 0;
    CHECK_FALSE(verdict(0).overload);
  }

  TEST_CASE("a run stopped by its own cap is stopped once and scored") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    world.feed(BudgetReached{"usd", 5});
    CHECK(world.pending<StopAgent>());
    world.feed(BudgetReached{"tokens", 6});
    CHECK(count<StopAgent>(world.log) == 1);
    world.feed(AgentEnded{true, exec(End::kCancelled), 8});
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kSuccess);
    CHECK(v.termination == Termination::kBudgetExceeded);
    CHECK(v.rationale == "budget_exceeded: usd");
    CHECK(v.facts.cap == "usd");
    CHECK_FALSE(v.facts.agent_exit);
    CHECK(v.evidence == 5);
  }

  TEST_CASE("a run that a breaker ended, a full log or a bill, is scored as one that a cap ended") {
    for (const auto& [cap, end] : {std::pair(kBreakerCap, Termination::kBreaker),
                                   std::pair(kOverrunCap, Termination::kBudgetExceeded),
                                   std::pair(kTraceCap, Termination::kResourceLimit)}) {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      world.feed(BudgetReached{std::string(cap), 5, "breaker: identical_call: again"});
      CHECK(world.pending<StopAgent>());
      world.feed(AgentEnded{true, exec(End::kCancelled), 8});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kSuccess);
      CHECK(v.termination == end);
      CHECK(v.rationale == "breaker: identical_call: again");
      CHECK(v.evidence == 5);
    }
  }

  TEST_CASE("an agent that was cancelled is not tried again") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    world.feed(AgentEnded{true, exec(End::kCancelled), 8});
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kInvalid);
    CHECK(v.termination == Termination::kOperatorCancel);
    CHECK_FALSE(v.infrastructure);
  }

  TEST_CASE("a cap that is reached outside the agent's phase stops nothing") {
    World world(plan_of(0, 1));
    world.until<RunCheck>();
    const std::size_t before = world.log.size();
    world.feed(BudgetReached{"usd", 5});
    CHECK(world.log.size() == before);
    CHECK(world.finish().termination == Termination::kCompleted);
  }

  TEST_CASE("a cancelled attempt is invalid wherever it stood and packs what there is") {
    const auto check = [](World& world) {
      world.feed(RunCancelAsked{"operator said so", false, 6});
      const Verdict& v = world.finish();
      CHECK(v.evidence == 6);
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kOperatorCancel);
      CHECK_FALSE(v.infrastructure);
      CHECK(v.rationale == "operator said so");
      world.feed(RunCancelAsked{"again"});  // too late to matter
      CHECK(v.rationale == "operator said so");
    };
    {
      World world(plan_of(1, 1));
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<RunSetup>();
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<RunAgent>();
      check(world);
    }
    {
      World world(plan_of(1, 1));
      world.until<RunCheck>();
      check(world);
    }
  }

  TEST_CASE("setup that fails on the untouched snapshot is invalid and never the agent's failure") {
    for (const bool network : {false, true}) {
      LifecyclePlan plan = plan_of(1, 1);
      plan.setup[0].network = network;
      World world(plan);
      world.until<RunSetup>();
      world.feed(SetupEnded{exec(End::kExited, 2), 3, "stderr ends: no route"});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.infrastructure == network);  // the outside world may answer next time
      CHECK(v.rationale ==
            "setup step 1 (make deps): exit 2 on the untouched snapshot; stderr ends: no route");
      CHECK(v.fault == (network ? Fault::kTask : Fault::kHost));
      CHECK(v.cause == (network ? "setup step 1 (make deps): exit 2" : ""));
      CHECK(count<RunAgent>(world.log) == 0);
      CHECK(v.evidence == 3);
    }
  }

  TEST_CASE("an image that cannot be built is its task's failure, whichever host says so") {
    std::vector<std::string> causes;
    for (const char* said : {"no route", "no space"}) {
      World world(plan_of(1, 1));
      world.feed(
          ImageFailed{"abcd", "a command returned 7", std::string("its build ends: ") + said});
      REQUIRE(world.pending<WriteManifest>());
      CHECK(std::get<WriteManifest>(world.log.back()).against == "image: a command returned 7");
      world.feed(StepDone{5});
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kInfrastructure);
      CHECK(v.infrastructure);  // another host may have what it begins with
      CHECK(v.fault == Fault::kTask);
      CHECK(v.rationale ==
            std::string("its image cannot be built: a command returned 7; its build ends: ") +
                said);
      CHECK(v.evidence == 5);
      CHECK(count<RunSetup>(world.log) + count<RunAgent>(world.log) == 0);
      causes.push_back(v.cause);
    }
    CHECK(causes[0] == "its image abcd cannot be built");
    CHECK(causes[0] == causes[1]);
  }

  TEST_CASE("a setup step that is stopped at its time limit has the same cause each time") {
    std::vector<std::string> causes;
    for (const int ms : {5'001, 5'007}) {
      LifecyclePlan plan = plan_of(1, 1);
      plan.setup[0].network = true;
      World world(plan);
      world.until<RunSetup>();
      ProgramEnd late = exec(End::kTimedOut);
      late.wall = std::chrono::milliseconds(ms);
      world.feed(SetupEnded{late, 3});
      causes.push_back(world.finish().cause);
    }
    CHECK(causes[0] == causes[1]);
    CHECK_FALSE(causes[0].empty());
  }

  TEST_CASE("an agent that could not start is neither a failure nor a success of an empty patch") {
    const auto end_of = [](int code, int ms) {
      AgentEnded e{true, exec(End::kExited, code), 9};
      e.exec.wall = std::chrono::milliseconds(ms);
      return e;
    };
    PatchExtracted nothing;
    nothing.changed = false;
    const auto judged = [](const AgentEnded& e, const PatchExtracted& p) {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      world.feed(e);
      if (!world.packaged) {
        world.until<ExtractPatch>();
        world.feed(p);
      }
      const Verdict v = world.finish();
      // A tree that cannot be read says so in a second one.
      CHECK(count<RecordTermination>(world.log) == (v.unreadable.empty() ? 1 : 2));
      return v;
    };
    for (const int code : {126, 127}) {
      AgentEnded e = end_of(code, 12);
      e.words = "stderr ends: sh: 1: /nonexistent: not found";
      const Verdict v = judged(e, nothing);
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kAgentUnavailable);
      CHECK(v.infrastructure);
      CHECK(v.fault == Fault::kAgent);
      CHECK(v.cause == "the agent could not start: exit " + std::to_string(code));
      CHECK(v.rationale == v.cause + " after 12 ms, without a change or a call; " + e.words);
      CHECK(v.facts.agent_exit == code);
    }
    // Whatever it did before, it had started: nobody leaves the denominator by an exit code.
    AgentEnded asked = end_of(127, 12), denied = end_of(127, 12);
    asked.asked = true;
    denied.denied = {"example.org:443 (1 time)"};
    PatchExtracted changed, unreadable = nothing;
    unreadable.unreadable = "too deep";
    const auto window = static_cast<int>(kAgentStartWindow.count());
    CHECK(judged(end_of(127, window), nothing).fault == Fault::kAgent);
    for (const auto& [e, p] :
         std::vector<std::pair<AgentEnded, PatchExtracted>>{{asked, nothing},
                                                            {denied, nothing},
                                                            {end_of(127, window + 1), nothing},
                                                            {end_of(1, 12), nothing},
                                                            {end_of(0, 12), nothing},
                                                            {end_of(127, 12), changed},
                                                            {end_of(127, 12), unreadable}}) {
      const Verdict v = judged(e, p);
      CHECK(v.fault == Fault::kHost);
      CHECK_FALSE(v.infrastructure);
      CHECK(v.termination != Termination::kAgentUnavailable);
      CHECK(v.outcome != RunOutcome::kInvalid);
    }
    World spent(plan_of(0, 1));  // stopped by its budget, and then 127
    spent.until<RunAgent>();
    spent.feed(BudgetReached{"usd", 4});
    spent.feed(end_of(127, 12));
    spent.until<ExtractPatch>();
    spent.feed(nothing);
    CHECK(spent.finish().termination == Termination::kBudgetExceeded);
  }

  TEST_CASE("setup that fails after the patch counts as a check of the build gate") {
    struct Row {
      ProgramEnd exec;
      bool network;
      CheckOutcome check;
      RunOutcome run;
    };
    const Row rows[] = {
        {exec(End::kExited, 2), false, CheckOutcome::kFail, RunOutcome::kFailure},
        {exec(End::kExited, 2), true, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kExited, 126), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kExited, 127), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kExited, 137), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kTimedOut), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kMemory), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kCpu), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kDisk), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
        {exec(End::kSignalled), false, CheckOutcome::kError, RunOutcome::kAcceptanceError},
    };
    for (const Row& row : rows) {
      LifecyclePlan plan = plan_of(1, 2);
      plan.setup[0].network = row.network;
      World world(plan);
      world.until<PlaceAcceptanceFiles>();
      world.until<RunSetup>();
      world.feed(SetupEnded{row.exec, 3});
      const Verdict& v = world.finish();
      CHECK(v.outcome == row.run);
      REQUIRE(v.checks.size() == 3);
      CHECK(v.checks[0].id == "setup");
      CHECK(v.checks[0].gate == "build");
      CHECK(v.checks[0].outcome == row.check);
      CHECK(v.checks[0].ended == to_string(row.exec.end));
      // What never ran has no outcome, and says why.
      for (const std::size_t i : {1U, 2U}) {
        CHECK_FALSE(v.checks[i].outcome);
        CHECK(v.checks[i].ended == "not_run");
        CHECK(v.checks[i].why == "did not run: setup failed");
      }
      CHECK(count<RunCheck>(world.log) == 0);
      CHECK(count<RecordSkippedCheck>(world.log) == 3);  // R058: each check has its event
    }
  }

  TEST_CASE("a check whose services fail has no outcome and they have one in its place") {
    World world(plan_of(0, 2));
    world.until<RunCheck>();
    CheckEnded never = ended(CheckOutcome::kPass, "did not run: service s ended");
    never.report.id = "c0";
    never.report.ended = "not_run";
    never.report.outcome.reset();
    never.services = "service s ended";
    world.feed(never);
    CheckEnded passed = ended(CheckOutcome::kPass, "");
    passed.report.id = "c1";
    passed.report.ended = "exited";
    world.until<RunCheck>();
    world.feed(passed);
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kFailure);
    REQUIRE(v.checks.size() == 3);
    CHECK_FALSE(v.checks[0].outcome);
    CHECK(v.checks[0].ended == "not_run");
    CHECK(v.checks[2].id == "services:c0");
    CHECK(v.checks[2].outcome == CheckOutcome::kFail);
    CHECK(v.checks[2].why == "service s ended");
    CHECK(count<RecordSkippedCheck>(world.log) == 1);
  }

  TEST_CASE("a sandbox that cannot be had for a check as specified is that check's error") {
    World world(plan_of(0, 2));
    world.until<RunCheck>();
    world.feed(StepFailed{error(Errc::kInvalid), 3});
    CHECK(world.pending<RunCheck>());
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kAcceptanceError);
    CHECK(v.checks[0].why == "it broke");
    CHECK(count<RecordSkippedCheck>(world.log) == 1);  // R058: it has its event all the same
    CHECK(v.checks[1].outcome == CheckOutcome::kPass);
  }

  TEST_CASE("a tree that cannot be read is a failure by the untouched tree and never a success") {
    for (const CheckOutcome outcome :
         {CheckOutcome::kPass, CheckOutcome::kFail, CheckOutcome::kError}) {
      World world(plan_of(0, 1));
      world.until<ExtractPatch>();
      world.feed(PatchExtracted{{}, {}, "nested too deep"});
      world.until<RunCheck>();
      world.feed(ended(outcome, ""));
      const Verdict& v = world.finish();
      CHECK(v.outcome == (outcome == CheckOutcome::kError ? RunOutcome::kAcceptanceError
                                                          : RunOutcome::kFailure));
      CHECK(v.termination == Termination::kResourceLimit);
      CHECK(v.violations == std::vector<std::string>{"unreadable: nested too deep"});
      CHECK_FALSE(v.infrastructure);
    }
  }

  TEST_CASE("a patch that git refuses is no way out of the count") {
    World world(plan_of(0, 1));
    world.until<ApplyPatch>();
    world.feed(PatchRefused{"line 3"});
    CHECK(world.pending<RestoreProtected>());
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kFailure);
    CHECK(v.violations == std::vector<std::string>{"unreadable: line 3"});
  }

  TEST_CASE("a patch that was handed in and fits nothing is a failure with its reason") {
    for (const CheckOutcome outcome : {CheckOutcome::kPass, CheckOutcome::kFail}) {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      AgentEnded end;
      end.misfit = "reference patch a.patch: line 3";
      world.feed(end);
      world.until<RunCheck>();
      world.feed(ended(outcome, ""));
      const Verdict& v = world.finish();
      CHECK(v.outcome == RunOutcome::kFailure);
      CHECK(v.termination == Termination::kCompleted);
      CHECK(v.violations.empty());
      CHECK(v.application.refused == end.misfit);
      CHECK(v.rationale ==
            "the method runs no program; patch: refused (reference patch a.patch: line 3)");
    }
  }

  TEST_CASE("the lowest rung of a run's patches is told and conflict markers do not decide") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    AgentEnded end;
    end.rung = "whitespace";
    world.feed(end);
    world.until<ExtractPatch>();
    PatchExtracted patch;
    patch.conflicts = {"a.py:3", "b.py:1"};
    world.feed(patch);
    world.until<ApplyPatch>();
    world.feed(PatchApplied{"exact"});
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kSuccess);
    CHECK(v.application.rung == "whitespace");
    CHECK(v.application.conflicts == patch.conflicts);
    CHECK(v.rationale ==
          "the method runs no program; patch: whitespace, conflict_markers (a.py:3 and 1 more)");
    World plain(plan_of(0, 1));
    plain.until<ApplyPatch>();
    plain.feed(PatchApplied{"exact"});
    CHECK(plain.finish().application.rung == "exact");
    CHECK(plain.finish().rationale.find("patch") == std::string::npos);
  }

  TEST_CASE("a patch too large to record is a resource limit and not another attempt") {
    World world(plan_of(0, 1));
    world.until<ExtractPatch>();
    world.feed(StepFailed{error(Errc::kExhausted), 3});
    const Verdict& v = world.finish();
    CHECK(v.outcome == RunOutcome::kInvalid);
    CHECK(v.termination == Termination::kResourceLimit);
    CHECK_FALSE(v.infrastructure);
  }

  TEST_CASE("a suite without checks proves nothing") {
    World world(plan_of(0, 0));
    CHECK(world.finish().outcome == RunOutcome::kInvalid);
  }

  TEST_CASE(
      "a method's setup comes after the task's, and its failure is the agent's, not the task's") {
    LifecyclePlan plan = plan_of(1, 1);
    plan.method_setup = {{"pip install mini", std::chrono::seconds(5), true},
                         {"npm install", std::chrono::seconds(5), false}};
    {
      World world(plan);
      world.until<RunAgent>();
      CHECK(count<RunSetup>(world.log) == 1);
      CHECK(count<RunMethodSetup>(world.log) == 2);
      CHECK(world.finish().outcome == RunOutcome::kSuccess);
      CHECK(count<RunSetup>(world.log) == 2);  // acceptance's: none of the method's
      CHECK(count<RunMethodSetup>(world.log) == 2);
    }
    for (const std::size_t failing : {0U, 1U}) {
      World world(plan);
      world.until<RunMethodSetup>();
      if (failing == 1) world.feed(SetupEnded{});
      world.feed(SetupEnded{exec(End::kExited, 3), 7, "stderr ends: no such package"});
      const Verdict& v = world.finish();
      CHECK(count<RunAgent>(world.log) == 0);
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kAgentUnavailable);
      CHECK(v.infrastructure);
      CHECK(v.fault == Fault::kAgent);
      const std::string step = failing == 0 ? "the method's setup step 1 (pip install mini): exit 3"
                                            : "the method's setup step 2 (npm install): exit 3";
      CHECK(v.cause == step);
      CHECK(v.rationale == step + "; stderr ends: no such package");
      CHECK(v.evidence == 7);
    }
    World world(plan);
    world.until<RunMethodSetup>();
    world.feed(StepFailed{error(Errc::kUnavailable), 3});
    const Verdict& v = world.finish();
    CHECK(v.termination == Termination::kInfrastructure);
    CHECK(v.fault == Fault::kHost);
  }

  TEST_CASE("texts from outside are bounded") {
    World world(plan_of(0, 1));
    world.until<RunCheck>();
    world.feed(ended(CheckOutcome::kFail, std::string(1 << 20, 'x')));
    CHECK(world.finish().checks[0].why.size() == 4096);
  }
}
