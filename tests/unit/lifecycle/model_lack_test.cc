// What an operator did wrong is no failure of an agent.
#include "common/score/outcome.h"

#include "tests/unit/lifecycle/lifecycle_world.h"
#include "worker/core/run_lifecycle.h"

using namespace proctor;
using namespace proctor::lifecycle_test;

TEST_SUITE("lifecycle") {
  TEST_CASE("an agent whose model could not be had is not judged, whatever it left") {
    const auto judged = [](const ModelLack& lack, End how, std::string_view cap = "",
                           int exit_code = 0) {
      World world(plan_of(0, 1));
      world.until<RunAgent>();
      if (!cap.empty()) world.feed(BudgetReached{std::string(cap), 4});
      AgentEnded e{true, exec(how, exit_code), 9};
      e.no_model = lack;
      world.feed(e);
      return world.finish();
    };
    for (const End how : {End::kExited, End::kTimedOut, End::kMemory}) {
      const Verdict v = judged({"the variable K has no key", false, 17}, how);
      CHECK(v.outcome == RunOutcome::kInvalid);
      CHECK(v.termination == Termination::kAgentUnavailable);
      CHECK(v.infrastructure);
      CHECK(v.fault == Fault::kAgent);
      CHECK(v.cause == "its model could not be had: the variable K has no key");
      CHECK(v.facts.no_model);
      CHECK(v.evidence == 17);
    }
    const Verdict busy = judged({"its provider answers 429", true, 0}, End::kExited);
    CHECK(busy.overload);
    CHECK(busy.termination == Termination::kModelOverloaded);
    CHECK(busy.fault == Fault::kHost);
    CHECK(busy.evidence == 9);
    // A cap that was reached was reached with answers, and a cancelled run is nobody's.
    CHECK(judged({"x", false, 0}, End::kExited, "usd").termination == Termination::kBudgetExceeded);
    CHECK(judged({"x", false, 0}, End::kCancelled).termination == Termination::kOperatorCancel);
    CHECK(judged({}, End::kExited).outcome == RunOutcome::kSuccess);
    // Unless calls that nobody answered used it up.
    for (const End how : {End::kExited, End::kCancelled}) {
      const Verdict eaten = judged({"x", false, 0, true}, how, "usd");
      CHECK(eaten.outcome == RunOutcome::kInvalid);
      CHECK(eaten.termination == Termination::kAgentUnavailable);
      CHECK(eaten.infrastructure);
    }
    // Nor is time that it waited for an answer the agent's.
    const Verdict waited = judged({"its provider answers 429", true, 0}, End::kCancelled, "wall");
    CHECK(waited.termination == Termination::kModelOverloaded);
    CHECK(judged({}, End::kCancelled, "wall").termination == Termination::kBudgetExceeded);
    // An agent that ends well after its provider failed has gone on without it.
    const ModelLack later{"its provider answers 500", false, 0, false, true};
    CHECK(judged(later, End::kExited).outcome == RunOutcome::kSuccess);
    CHECK(judged(later, End::kExited, "", 1).termination == Termination::kAgentUnavailable);
    CHECK(judged(later, End::kTimedOut).termination == Termination::kAgentUnavailable);
  }

  TEST_CASE("a worker's next life knows that there was no model") {
    AgentEnded e{true, exec(End::kExited, 1), 9};
    e.no_model = {"the variable K has no key", true, 17, true, true};
    const auto json = event_json(e);
    REQUIRE(json);
    const auto back = event_from(*json);
    REQUIRE(back.ok());
    const ModelLack lack = std::get<AgentEnded>(*back).no_model;
    CHECK(lack.why == e.no_model.why);
    CHECK(lack.busy);
    CHECK(lack.evidence == 17);
    CHECK(lack.eaten);
    CHECK(lack.later);
  }
}
