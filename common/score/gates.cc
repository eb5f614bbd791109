#include "common/score/gates.h"

#include <algorithm>

#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::array kOrder{Gate::kPatch, Gate::kBuild, Gate::kFunctional, Gate::kSafety};
// printable() goes beyond its limit by one character as \xNN and "...".
constexpr std::size_t kCutAt = kWhyBytes - 18;

// Larger is worse; the worst decides.
int badness(GateOutcome o) {
  constexpr std::array kWorse{GateOutcome::kPass, GateOutcome::kNotRun, GateOutcome::kFail,
                              GateOutcome::kError};
  return static_cast<int>(std::ranges::find(kWorse, o) - kWorse.begin());
}

GateOutcome outcome_of(const GateInput& input) {
  if (!input.outcome) return GateOutcome::kNotRun;
  if (*input.outcome == CheckOutcome::kPass) return GateOutcome::kPass;
  return *input.outcome == CheckOutcome::kFail ? GateOutcome::kFail : GateOutcome::kError;
}

void add_why(std::string& out, const GateInput& input) {
  if (!input.id.empty()) out.append(input.id).append(": ");
  if (!input.why.empty())
    out += input.why;
  else if (input.outcome)
    out.append(word_of(*input.outcome)).append(", without a reason");
  else
    out += "did not run";
}

// A gate that nothing speaks for or against.
void decide_alone(GateVerdict& gate, bool no_build) {
  switch (gate.gate) {
    case Gate::kPatch:
      gate.why = "no patch was applied";
      return;
    case Gate::kBuild:
      gate.outcome = no_build ? GateOutcome::kPass : GateOutcome::kNotRun;
      gate.why = no_build ? "no build step: declared by the contract"
                          : "the contract has no build or static check, and does not say so "
                            "(gates: {build: none})";
      return;
    case Gate::kFunctional:
      gate.why = "the contract has no functional check";
      return;
    case Gate::kSafety:
      gate.outcome = GateOutcome::kPass;
      gate.why = "no violation was recorded";
      return;
    case Gate::kMaint:
      break;
  }
  PROCTOR_ASSERT(false);
}
}  // namespace

void in_order(std::vector<std::uint64_t>& evidence) {
  std::ranges::sort(evidence);
  evidence.erase(std::unique(evidence.begin(), evidence.end()), evidence.end());
}

GateVector gate_vector(std::span<const GateInput> inputs, bool no_build, std::uint64_t end) {
  GateVector gates;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    GateVerdict& gate = gates[i];
    gate.gate = kOrder[i];
    gate.why.reserve(kWhyBytes);
    bool any = false;
    std::vector<std::uint64_t>& evidence = gate.evidence;
    for (const GateInput& input : inputs) {
      if (input.gate != gate.gate) continue;
      const GateOutcome outcome = outcome_of(input);
      if (any && badness(outcome) < badness(gate.outcome)) continue;
      if (!any || outcome != gate.outcome) {
        gate.why.clear();
        evidence.clear();
      }
      any = true;
      gate.outcome = outcome;
      if (input.evidence != 0) evidence.push_back(input.evidence);
      const bool first = gate.why.empty();
      if (!first && (outcome != GateOutcome::kPass || kWhyBytes <= gate.why.size())) continue;
      if (!first) gate.why += "; ";
      add_why(gate.why, input);
    }
    if (!any) decide_alone(gate, no_build);
    gate.why = printable(gate.why, kCutAt);
    if (gate.outcome == GateOutcome::kNotRun) evidence.clear();
    if (evidence.empty() && end != 0) evidence.push_back(end);
    in_order(evidence);
  }
  return gates;
}

bool all_pass(const GateVector& gates) {
  return std::ranges::all_of(
      gates, [](const GateVerdict& gate) { return gate.outcome == GateOutcome::kPass; });
}

std::optional<std::array<GateOutcome, 4>> read_gates(std::string_view text) {
  std::array<GateOutcome, 4> out{};
  const std::vector<std::string_view> gates = split(text, ',');
  if (gates.size() != out.size()) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto outcome = from_word<GateOutcome>(gates[i]);
    if (!outcome) return std::nullopt;
    out[i] = *outcome;
  }
  return out;
}
}  // namespace proctor
