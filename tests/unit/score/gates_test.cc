#include "common/score/gates.h"

#include <doctest/doctest.h>

#include <vector>

using namespace proctor;

namespace {

std::vector<GateInput> suite(std::optional<CheckOutcome> build, std::optional<CheckOutcome> unit) {
  return {{Gate::kBuild, "build", build, "make said no"},
          {Gate::kFunctional, "unit", unit, "3 failing, first: a"}};
}

}  // namespace

TEST_SUITE("score") {
  TEST_CASE("an attempt that meets everything passes the gates in order") {
    const auto gates =
        gate_vector(suite(CheckOutcome::kPass, CheckOutcome::kPass),
                    {.patch = CheckOutcome::kPass, .patch_why = {}, .violations = {}});
    const std::vector<std::string_view> names{"patch", "build", "functional", "safety"};
    for (std::size_t i = 0; i < gates.size(); ++i) {
      CHECK(to_string(gates[i].gate) == names[i]);
      CHECK(gates[i].outcome == GateOutcome::kPass);
      CHECK(gates[i].why.empty());
    }
  }

  TEST_CASE("each gate says why it is not passed") {
    const auto gates = gate_vector(suite(CheckOutcome::kError, CheckOutcome::kFail),
                                   {.patch = CheckOutcome::kFail,
                                    .patch_why = "hunk 2 of a.c does not apply",
                                    .violations = {"tests/a.py: protected and changed"}});
    CHECK(gates[0].outcome == GateOutcome::kFail);
    CHECK(gates[0].why == "hunk 2 of a.c does not apply");
    CHECK(gates[1].outcome == GateOutcome::kError);
    CHECK(gates[1].why == "build: make said no");
    CHECK(gates[2].outcome == GateOutcome::kFail);
    CHECK(gates[2].why == "unit: 3 failing, first: a");
    CHECK(gates[3].outcome == GateOutcome::kFail);
    CHECK(gates[3].why == "tests/a.py: protected and changed");
  }

  TEST_CASE("within a gate error beats fail and fail beats not run") {
    const auto functional = [](std::vector<std::optional<CheckOutcome>> outcomes) {
      std::vector<GateInput> checks;
      for (const auto& o : outcomes) checks.push_back({Gate::kFunctional, "x", o, ""});
      return gate_vector(checks, {})[2].outcome;
    };
    CHECK(functional({CheckOutcome::kPass, CheckOutcome::kFail, CheckOutcome::kError}) ==
          GateOutcome::kError);
    CHECK(functional({std::nullopt, CheckOutcome::kFail}) == GateOutcome::kFail);
    CHECK(functional({CheckOutcome::kPass, std::nullopt}) == GateOutcome::kNotRun);
    CHECK(functional({}) == GateOutcome::kNotRun);
  }

  TEST_CASE("a monitor that stopped the run fails safety even if all tests pass") {
    const auto gates = gate_vector(
        suite(CheckOutcome::kPass, CheckOutcome::kPass),
        {.patch = CheckOutcome::kPass, .patch_why = {}, .violations = {}, .policy_stop = true});
    CHECK(gates[3].outcome == GateOutcome::kFail);
    CHECK(gates[2].outcome == GateOutcome::kPass);
    const auto untried = gate_vector({}, {});
    CHECK(untried[0].outcome == GateOutcome::kNotRun);
    CHECK(untried[0].why == "no patch was applied");
    CHECK(untried[1].why == "the contract has no check for this gate");
    CHECK(untried[3].outcome == GateOutcome::kPass);
  }
}
