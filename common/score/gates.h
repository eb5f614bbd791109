#pragma once
// The gate vector of an attempt (R131-R140): patch, build, functional, safety, in this order and
// non-compensatory.  Pure; any thread.  `why` is for auditors and never scored (R136).
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/contract.h"
#include "common/score/outcome.h"

namespace proctor {
enum class GateOutcome { kPass, kFail, kError, kNotRun };
constexpr auto words(GateOutcome) {
  using enum GateOutcome;
  return std::to_array<Word<GateOutcome>>(
      {{"pass", kPass}, {"fail", kFail}, {"error", kError}, {"not_run", kNotRun}});
}

inline constexpr std::size_t kWhyBytes = 300;

struct GateVerdict {
  Gate gate = Gate::kPatch;
  GateOutcome outcome = GateOutcome::kNotRun;
  std::string why{};                      // never empty, at most kWhyBytes
  std::vector<std::uint64_t> evidence{};  // events of the trace that it rests on, rising
};
using GateVector = std::array<GateVerdict, 4>;
// Makes them rise, each once.
void in_order(std::vector<std::uint64_t>& evidence);

// One thing that speaks for or against a gate.
struct GateInput {
  Gate gate = Gate::kFunctional;
  std::string id;                       // a check's; empty: the gate's own
  std::optional<CheckOutcome> outcome;  // nothing: it never ran
  std::string why;                      // also why it never ran
  std::uint64_t evidence = 0;
};

// An error at a gate is a gate failure that also names the evaluation (R132): kError is no pass.
// One input with an error makes the gate kError, else one that failed makes it kFail, else one that
// did not run makes it kNotRun; the first of these says why.  A gate passes where all of its inputs
// do, and `why` names them.  Without any: safety passes, patch and functional are kNotRun, and so
// is build unless the contract says that it has none (`no_build`, R138).  `end`: the event that a
// gate which did not run points to.
GateVector gate_vector(std::span<const GateInput> inputs, bool no_build, std::uint64_t end);

bool all_pass(const GateVector& gates);

// "pass,pass,fail,not_run": AttemptFacts::gates.
std::optional<std::array<GateOutcome, 4>> read_gates(std::string_view text);
}  // namespace proctor
