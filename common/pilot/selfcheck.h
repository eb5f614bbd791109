#pragma once
// What the variants of a contract came to, and what that says of it.  The reference must pass every
// time, no change and a change of nothing must fail in the same way, tests without the repair must
// fail and the repair without its tests pass, no end with 0 may pass, and most mistakes in the
// repair must be seen.  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/contract/contract.h"
#include "common/pilot/variants.h"
#include "common/score/outcome.h"

namespace proctor {

// One check of one repeat, as its report has it.
struct CheckSeen {
  std::string id;
  std::optional<CheckOutcome> outcome;  // nothing: it never ran
  std::vector<std::string> failing{};   // required or failing tests; cut at kFailingIdsMax
  std::string why{};
};
struct Repeat {
  std::optional<RunOutcome> outcome;  // nothing: it has none (no money, stopped)
  std::string why{};
  std::vector<CheckSeen> checks{};
};
struct VariantRuns {
  std::string variant;
  std::string what{};
  std::vector<Repeat> repeats;
};

// Why a verdict is what it is: what to do about it follows from this (cli/selfcheck_text.h).
enum class SelfcheckCause {
  kNone,
  kCannotRun,    // the reference could not be judged on this host
  kNoReference,  // there is none
  kReference,
  kNoop,
  kNoTouch,  // empty or junk come out otherwise than noop
  kTestsOnly,
  kSourceOnly,
  kForged,   // an end with 0 is enough
  kMutants,  // too many survive
  kFewMutants,
  kFlaky,
  kUnjudged,  // some run has no outcome, or there were fewer than were asked for
};

struct MutantTally {
  std::uint64_t decided = 0, killed = 0, undecided = 0;
  std::optional<double> lower95;       // one-sided limit of the share that dies
  std::vector<std::string> survivors;  // names
};

struct VariantOutcomes {
  std::string variant;
  std::string what;
  std::vector<std::string> outcomes;  // "success", "failure", "acceptance_error", "invalid", "none"
};

struct SelfcheckTask {
  std::string id;
  Digest contract;
  std::string image;
  std::vector<VariantOutcomes> variants;
  MutantTally mutants;
  // "sound", "weak", "unsound: WHY", "flaky: WHY" or "unjudged: WHY".
  std::string verdict;
  SelfcheckCause cause = SelfcheckCause::kNone;
};

// Sound or weak.
bool is_good(const SelfcheckTask& task);

// Requires: one entry of `runs` per variant of the contract.  Fewer repeats of one than
// settings.repeats: unjudged.
SelfcheckTask judge_selfcheck(const Contract& contract, const std::vector<VariantRuns>& runs,
                              const SelfcheckSettings& settings);
// Of a contract that nothing was run of: its host lacks something.
SelfcheckTask cannot_run_here(const Contract& contract, const std::string& why);

}  // namespace proctor
