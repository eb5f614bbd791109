#pragma once
// The outcomes of a contract's variants, and what they say of it.  The reference must pass every
// time, no change and a change of nothing must fail in the same way, tests without the repair must
// fail and the repair without its tests pass, no end with 0 may pass, and most mistakes in the
// repair must be seen.  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/base/result.h"
#include "common/base/words.h"
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
  std::uint64_t passes = 0;  // runs of acceptance that passed before one that did not
};
struct VariantRuns {
  std::string variant;
  std::string what{};
  std::vector<Repeat> repeats;
};

// Why a verdict is what it is: what to do about it follows from this
// (coordinator/cli/selfcheck.cc).
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
constexpr auto words(SelfcheckCause) {
  using enum SelfcheckCause;
  return std::to_array<Word<SelfcheckCause>>({{"none", kNone},
                                              {"cannot_run", kCannotRun},
                                              {"no_reference", kNoReference},
                                              {"reference", kReference},
                                              {"noop", kNoop},
                                              {"no_touch", kNoTouch},
                                              {"tests_only", kTestsOnly},
                                              {"source_only", kSourceOnly},
                                              {"forged", kForged},
                                              {"mutants", kMutants},
                                              {"few_mutants", kFewMutants},
                                              {"flaky", kFlaky},
                                              {"unjudged", kUnjudged}});
}

struct MutantTally {
  std::uint64_t decided = 0, killed = 0, undecided = 0;
  std::optional<double> lower95;       // one-sided limit of the share that dies
  std::vector<std::string> survivors;  // names
};
void fields(auto& v, Is<MutantTally> auto& m) {
  v("decided", m.decided);
  v("killed", m.killed);
  v("undecided", m.undecided);
  v("survivors", m.survivors);
  v("lower95", m.lower95, {.digits = true});
}

struct VariantOutcomes {
  std::string variant;
  std::string what;
  std::vector<std::string> outcomes;  // "success", "failure", "acceptance_error", "invalid", "none"
};
void fields(auto& v, Is<VariantOutcomes> auto& o) {
  v("variant", o.variant);
  v("outcomes", o.outcomes);
  v("what", o.what, kOptional);
}

struct SelfcheckTask {
  std::string id;
  Digest contract;
  std::string image;
  std::uint64_t rerun = 0;  // Contract::rerun_in() its campaign
  std::vector<VariantOutcomes> variants;
  MutantTally mutants;
  // "sound", "weak", "unsound: WHY", "flaky: WHY" or "unjudged: WHY".
  std::string verdict;
  SelfcheckCause cause = SelfcheckCause::kNone;
};
void fields(auto& v, Is<SelfcheckTask> auto& t) {
  v("id", t.id);
  v("contract", t.contract);
  v("image", t.image);
  v("rerun", t.rerun, kOptional);
  v("verdict", t.verdict);
  v("cause", t.cause);
  v("mutants", t.mutants);
  v("variants", t.variants);
}

// Sound or weak.
bool is_good(const SelfcheckTask& task);

// Requires: one entry of `runs` per variant of the contract.  Fewer repeats of one than
// settings.repeats: unjudged.
SelfcheckTask judge_selfcheck(const Contract& contract, const std::vector<VariantRuns>& runs,
                              const SelfcheckSettings& settings);
// The entry of a contract that was not run: its host lacks something.
SelfcheckTask cannot_run_here(const Contract& contract, const std::string& why);

// reports/selfcheck.json: what was found of each contract, and with which settings, so that a task
// whose contract is still the same is not run again.  Numbers with a fraction are text.

inline constexpr std::size_t kSelfcheckBytes = std::size_t{64} << 20;

struct SelfcheckResults {
  std::string campaign;  // its name
  SelfcheckSettings settings;
  std::vector<SelfcheckTask> tasks;
  std::int64_t usd_micros = 0;  // of the last time that something was run
};
void fields(auto& v, Is<SelfcheckResults> auto& r) {
  v.follows("format", "proctor-selfcheck-1");
  v("campaign", r.campaign);
  v("seed", r.settings.seed);
  v("settings", r.settings);
  v("usd_micros", r.usd_micros);
  v("tasks", r.tasks);
}

std::string to_json_text(const SelfcheckResults& results);
// kInvalid: not such a file.
Result<SelfcheckResults> parse_selfcheck(std::string_view text);

// The entry of `earlier` that still holds of a contract; null: it has to be run.  One that could
// not run may run now, though nothing in the contract changed.  `rerun`: the campaign's.
const SelfcheckTask* still_holds(const SelfcheckResults& earlier, const Contract& contract,
                                 const SelfcheckSettings& settings, std::uint32_t rerun = 0);
}  // namespace proctor
