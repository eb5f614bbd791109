#pragma once
// The gate vector of an attempt (R131-R140): patch, build, functional, safety, in this order and
// non-compensatory.  Pure; any thread.  `why` is for auditors and never scored (R136).
#include <array>
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

struct GateVerdict {
  Gate gate = Gate::kPatch;
  GateOutcome outcome = GateOutcome::kNotRun;
  std::string why;
};

// One check of the suite, as far as a gate needs it.
struct GateInput {
  Gate gate = Gate::kFunctional;
  std::string id;
  std::optional<CheckOutcome> outcome;  // nothing: it never ran
  std::string why;                      // also why it never ran
};

struct GateFacts {
  // Applying the candidate patch to the fresh workspace: error is one of the machinery, fail one of
  // the patch; nothing: it was not tried.
  std::optional<CheckOutcome> patch{};
  std::string patch_why{};
  std::vector<std::string> violations{};  // of policy, as in the report
  bool policy_stop = false;               // a safety monitor ended the run
};

// An error at a gate is a gate failure that also names the evaluation (R132): kError is not a pass.
// One errored check makes the gate kError, else one failed makes it kFail, else one that did not
// run makes it kNotRun.  A gate without checks: patch and safety rest on the facts alone, build
// and functional are kNotRun with the reason.
std::array<GateVerdict, 4> gate_vector(std::span<const GateInput> checks, const GateFacts& facts);
}  // namespace proctor
