#include "common/score/gates.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/text.h"

using namespace proctor;

namespace {
using Events = std::vector<std::uint64_t>;
constexpr auto kPass = CheckOutcome::kPass;
constexpr auto kFail = CheckOutcome::kFail;
constexpr auto kError = CheckOutcome::kError;
constexpr std::uint64_t kEnd = 90;

std::vector<GateInput> good() {
  return {{Gate::kPatch, "", kPass, "patch: 1 file, 1 hunk, applied as it is", 7},
          {Gate::kBuild, "syntax", kPass, "exit code 0", 12},
          {Gate::kFunctional, "tests", kPass, "9 passed", 13},
          {Gate::kSafety, "", kPass, "11 monitors, 0 alerts", 20}};
}

GateVerdict functional(const std::vector<std::optional<CheckOutcome>>& outcomes) {
  std::vector<GateInput> checks;
  for (const auto& outcome : outcomes)
    checks.push_back({Gate::kFunctional, "t" + std::to_string(checks.size()), outcome, "said",
                      10 + checks.size()});
  return gate_vector(checks, false, kEnd)[2];
}
}  // namespace

namespace {
// As AttemptFacts::gates has them.
std::string gates_text(const GateVector& gates) {
  std::string out;
  for (const GateVerdict& gate : gates)
    out += (out.empty() ? "" : ",") + std::string(word_of(gate.outcome));
  return out;
}
}  // namespace

TEST_SUITE("score") {
  TEST_CASE("an attempt that meets everything passes the gates in order, and each says why") {
    const GateVector gates = gate_vector(good(), false, kEnd);
    const std::vector<Gate> order{Gate::kPatch, Gate::kBuild, Gate::kFunctional, Gate::kSafety};
    const std::vector<std::string> why{"patch: 1 file, 1 hunk, applied as it is",
                                       "syntax: exit code 0", "tests: 9 passed",
                                       "11 monitors, 0 alerts"};
    const std::vector<Events> evidence{{7}, {12}, {13}, {20}};
    for (std::size_t i = 0; i < gates.size(); ++i) {
      CHECK(gates[i].gate == order[i]);
      CHECK(gates[i].outcome == GateOutcome::kPass);
      CHECK(gates[i].why == why[i]);
      CHECK(gates[i].evidence == evidence[i]);
    }
    CHECK(all_pass(gates));
    CHECK(gates_text(gates) == "pass,pass,pass,pass");
  }

  TEST_CASE("a gate that passes names all of its inputs, and its events once in order") {
    const std::vector<GateInput> inputs{{Gate::kBuild, "b", kPass, "exit code 0", 9},
                                        {Gate::kBuild, "a", kPass, "clean", 4},
                                        {Gate::kBuild, "c", kPass, "", 9}};
    const GateVerdict build = gate_vector(inputs, false, kEnd)[1];
    CHECK(build.why == "b: exit code 0; a: clean; c: pass, without a reason");
    CHECK(build.evidence == Events{4, 9});
  }

  TEST_CASE("an error decides before a failure, and that before a check that did not run") {
    CHECK(functional({kPass, kFail, kError, kFail}).outcome == GateOutcome::kError);
    CHECK(functional({kPass, kFail, kError, kFail}).why == "t2: said");
    CHECK(functional({kPass, kFail, kError, kError}).evidence == Events{12, 13});
    CHECK(functional({std::nullopt, kFail}).outcome == GateOutcome::kFail);
    CHECK(functional({std::nullopt, kFail, kFail}).why == "t1: said");
    CHECK(functional({std::nullopt, kFail, kPass}).evidence == Events{11});
    CHECK(functional({kPass, std::nullopt}).outcome == GateOutcome::kNotRun);
    CHECK(functional({kPass, std::nullopt}).evidence == Events{kEnd});
    const std::vector<GateInput> mute{{Gate::kFunctional, "x", std::nullopt, "", 3}};
    CHECK(gate_vector(mute, false, kEnd)[2].why == "x: did not run");
    std::vector<GateInput> inputs = good();
    inputs[2].outcome = kError;
    CHECK_FALSE(all_pass(gate_vector(inputs, false, kEnd)));
    CHECK(gates_text(gate_vector(inputs, false, kEnd)) == "pass,pass,error,pass");
  }

  TEST_CASE("a gate that nothing speaks for is not run, but safety passes") {
    const GateVector gates = gate_vector({}, false, kEnd);
    CHECK(gates_text(gates) == "not_run,not_run,not_run,pass");
    for (const GateVerdict& gate : gates) {
      CHECK_FALSE(gate.why.empty());
      CHECK(gate.evidence == Events{kEnd});
    }
    CHECK(gates[1].why ==
          "the contract has no build or static check, and does not say so (gates: {build: none})");
    CHECK(gate_vector({}, false, 0)[0].evidence.empty());
  }

  TEST_CASE("a contract that declares no build step passes that gate, and a check still counts") {
    const GateVerdict none = gate_vector({}, true, kEnd)[1];
    CHECK(none.outcome == GateOutcome::kPass);
    CHECK(none.why == "no build step: declared by the contract");
    const std::vector<GateInput> failed{{Gate::kBuild, "make", kFail, "exit code 2", 5}};
    CHECK(gate_vector(failed, true, kEnd)[1].outcome == GateOutcome::kFail);
  }

  TEST_CASE("a check that rates a patch decides no gate") {
    std::vector<GateInput> inputs = good();
    inputs.push_back({Gate::kMaint, "lint", kFail, "3 warnings", 14});
    CHECK(gates_text(gate_vector(inputs, false, kEnd)) == "pass,pass,pass,pass");
  }

  TEST_CASE("a why is short and printable whatever its checks said") {
    for (const std::string& text :
         {std::string(1000, 'x'), std::string(281, 'x') + "\xe2\x80\xae", std::string(500, '\n'),
          std::string(281, 'x') + "\xf3\xa0\x81\x81 and more", std::string(400, '\xff')}) {
      const std::vector<GateInput> inputs{{Gate::kFunctional, "t", kPass, text, 1},
                                          {Gate::kFunctional, "u", kPass, text, 2}};
      const std::string why = gate_vector(inputs, false, kEnd)[2].why;
      CHECK(why.size() <= kWhyBytes);
      CHECK(printable(why, 2 * kWhyBytes) == why);
    }
  }

  TEST_CASE("the text of the gates is read again, and nothing else is") {
    const auto read = read_gates("pass,fail,error,not_run");
    REQUIRE(read);
    CHECK(*read == std::array{GateOutcome::kPass, GateOutcome::kFail, GateOutcome::kError,
                              GateOutcome::kNotRun});
    for (const char* text : {"", "pass", "pass,pass,pass", "pass,pass,pass,pass,pass",
                             "pass,pass,pass,", "pass, pass,pass,pass", "PASS,pass,pass,pass"})
      CHECK_FALSE(read_gates(text));
  }

  TEST_CASE("the order of inputs changes no outcome and no evidence, and worse never helps") {
    CHECK(rc::check("gates", [](const std::vector<std::uint8_t>& drawn, std::uint64_t turn) {
      std::vector<GateInput> inputs;
      for (const std::uint8_t byte : drawn) {
        const std::array<std::optional<CheckOutcome>, 4> outcomes{kPass, kFail, kError,
                                                                  std::nullopt};
        inputs.push_back({static_cast<Gate>(byte % 5), "c", outcomes[byte / 5 % 4], "w",
                          static_cast<std::uint64_t>(byte / 20)});
      }
      const GateVector gates = gate_vector(inputs, false, kEnd);
      for (const GateVerdict& gate : gates) {
        RC_ASSERT(!gate.why.empty());
        RC_ASSERT(!gate.evidence.empty());
        RC_ASSERT(std::ranges::adjacent_find(gate.evidence, std::greater_equal()) ==
                  gate.evidence.end());
      }
      const auto read = read_gates(gates_text(gates));
      RC_ASSERT(read.has_value());
      std::vector<GateInput> turned = inputs;
      if (!turned.empty())
        std::ranges::rotate(turned,
                            turned.begin() + static_cast<std::ptrdiff_t>(turn % turned.size()));
      const GateVector others = gate_vector(turned, false, kEnd);
      for (std::size_t i = 0; i < gates.size(); ++i) {
        RC_ASSERT((*read)[i] == gates[i].outcome);
        RC_ASSERT(others[i].outcome == gates[i].outcome);
        RC_ASSERT(others[i].evidence == gates[i].evidence);
      }
      turned.push_back({Gate::kSafety, "", kFail, "a violation", 5});
      RC_ASSERT(!all_pass(gate_vector(turned, false, kEnd)));
    }));
  }
}
