#pragma once
// Outcomes of checks and runs, exactly as R057-R061 define them, and more about a run in words of
// its rationale: whoever has only that (a scheduler, a journal of any age) knows it.  Pure.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/base/limits.h"
#include "common/base/words.h"

namespace proctor {
// pass: executed and met.  fail: executed and violated.  error: did not complete as specified
// (timeout, crash of the harness, missing tool).
enum class CheckOutcome { kPass, kFail, kError };
constexpr auto words(CheckOutcome) {
  using enum CheckOutcome;
  return std::to_array<Word<CheckOutcome>>({{"pass", kPass}, {"fail", kFail}, {"error", kError}});
}

enum class RunOutcome { kSuccess, kFailure, kAcceptanceError, kInvalid };
constexpr auto words(RunOutcome) {
  using enum RunOutcome;
  return std::to_array<Word<RunOutcome>>({{"success", kSuccess},
                                          {"failure", kFailure},
                                          {"acceptance_error", kAcceptanceError},
                                          {"invalid", kInvalid}});
}

// Why a run ended (R080-R082); orthogonal to its outcome.
enum class Termination {
  kCompleted,       // the method ended by itself
  kAgentTimeout,    // policy.wall; a cap on wall is a budget
  kBudgetExceeded,  // a cap of the run
  kResourceLimit,   // memory, processes, disk
  kPolicyStop,      // safety monitor
  kOperatorCancel,
  kInfrastructure,    // sandbox or host failed: makes a new attempt
  kAgentUnavailable,  // the method's program could not start (docs/worker.md): likewise
  kBreaker,           // a registered circuit breaker tripped (docs/breakers.md); judged
  kModelOverloaded,   // a provider of models had no room: makes a new attempt, later
};
constexpr auto words(Termination) {
  using enum Termination;
  return std::to_array<Word<Termination>>({{"completed", kCompleted},
                                           {"agent_timeout", kAgentTimeout},
                                           {"budget_exceeded", kBudgetExceeded},
                                           {"resource_limit", kResourceLimit},
                                           {"policy_stop", kPolicyStop},
                                           {"operator_cancel", kOperatorCancel},
                                           {"infrastructure", kInfrastructure},
                                           {"agent_unavailable", kAgentUnavailable},
                                           {"breaker", kBreaker},
                                           {"model_overloaded", kModelOverloaded}});
}

// Whose failure it looks like, of an attempt that failed before anybody's work was judged.
enum class Fault : std::uint8_t {
  kHost,   // nobody else's: a disk, an engine, a lost connection
  kTask,   // a setup step of the contract failed on the untouched snapshot
  kAgent,  // the method's program could not start
};
constexpr auto words(Fault) {
  using enum Fault;
  return std::to_array<Word<Fault>>({{"host", kHost}, {"task", kTask}, {"agent", kAgent}});
}

// By what acceptance left behind: one entry per check of the suite, nothing where no complete event
// was recorded.  Missing evidence is invalid, never a failure (Invariant 1, R055, R059).
RunOutcome decide(bool identity_consistent, std::span<const std::optional<CheckOutcome>> checks);

// A run whose model could not be had, for no fault of its agent's: the operator's key, the address
// or the provider itself.  Its rationale and its cause begin with these words.
struct ModelLack {
  std::string why{};           // empty: it was had
  bool busy = false;           // a provider had no room: an overload
  std::uint64_t evidence = 0;  // the trace event that shows it; 0: none
  // Calls that nobody answered used up a cap of the run: its end by that cap is not the agent's.
  bool eaten = false;
  // Its provider failed after it had answered: an agent that ended well all the same is judged.
  bool later = false;
};

// "its model could not be had: WHY".
std::string no_model(std::string_view why);

// How an agent's program ended, with its exit code, as the rationale of its run says it.

// `how`: "exit 3", "ended by signal 11".
std::string ended_by_itself(std::string_view how);  // of a program that was at work
std::string could_not_start(std::string_view how);  // of one that was not

// "; not judged: WHY": ends the rationale of a run whose agent is paid for and whose acceptance
// failed for the host's reasons.  Its outcome is invalid.
std::string not_judged(std::string_view why);

// How the candidate patch fitted (R137, R150).
struct PatchEnd {
  // The rung of the ladder it fits by: exact, whitespace, three_way.  For a method that hands in a
  // patch of somebody's, the lower of the two that it took.  Empty: nothing was applied.
  std::string rung{};
  std::string refused{};                 // why it fits by none; the untouched tree was judged
  std::vector<std::string> conflicts{};  // "PATH:LINE" of files that got conflict markers
  bool empty() const { return rung.empty() && refused.empty() && conflicts.empty(); }
  friend bool operator==(const PatchEnd&, const PatchEnd&) = default;
};

// The one of two rungs (or "") that is further down.
std::string_view worse_rung(std::string_view a, std::string_view b);

// "", or "; patch: three_way, conflict_markers (a.py:3)": nothing of a patch that fits as it is.
std::string patch_words(const PatchEnd& end);
// "three_way, conflict_markers", "refused": AttemptFacts::patch.
std::string patch_word(const PatchEnd& end);

inline constexpr std::size_t kFirstViolationBytes = 200;
// "", or "; violations: 3 (protected: tests/a.py)".  `first` is cut to kFirstViolationBytes.
std::string violation_words(std::uint64_t count, std::string_view first);

// Facts of an attempt with a result that somebody counts or decides by.  Its rationale says them to
// people.
struct AttemptFacts {
  Fault fault = Fault::kHost;
  std::optional<int> agent_exit{};  // its program ended by itself, with this
  std::string patch{};  // how its patch fitted, where not as it is: "three_way, conflict_markers"
  std::uint64_t violations = 0;  // constraints of its contract that it broke (R008)
  std::string violated{};        // the first: "protected: tests/a.py"
  std::string cap{};             // that ended it: "usd", "tokens"; empty: none
  bool no_model = false;         // its model could not be had, for no fault of its agent's
  bool not_judged = false;       // its agent is paid for; acceptance failed for the host's reasons
  // The rest is in report.json beside them, under these names.
  std::string gates{};          // "pass,pass,fail,pass" (score/gates.h); empty: an older worker's
  std::string score{};          // graded, as decimal text; empty: it has none
  std::string tags{};           // ids of its failure modes, with commas between
  std::string configuration{};  // 16 hex digits of its class (trace/manifest.h); empty: not known
  bool networked = false;       // a phase had the network: it cannot be replayed (R075)
  friend bool operator==(const AttemptFacts&, const AttemptFacts&) = default;
};
// "", or the words of `patch` and `cap`.
constexpr bool is_fact_words(std::string_view words) {
  return std::ranges::all_of(
      words, [](char c) { return ('a' <= c && c <= 'z') || c == '_' || c == ',' || c == ' '; });
}
// Without `fault` and `agent_exit`, which a result on the wire holds in ways of its own.
void other_fields(auto& v, Is<AttemptFacts> auto& f) {
  constexpr std::string_view kWhy = "has other than small letters, _, comma and space";
  v("patch", f.patch, {.bytes = limits::kNameBytes, .optional = true});
  v.require(is_fact_words(f.patch), "patch", kWhy);
  v("violations", f.violations);
  v("violated", f.violated,
    {.bytes = kFirstViolationBytes, .text = Rule::Text::kProse, .optional = true});
  v("cap", f.cap, {.bytes = limits::kNameBytes, .optional = true});
  v.require(is_fact_words(f.cap), "cap", kWhy);
  v("no_model", f.no_model);
  v("not_judged", f.not_judged);
}
// "", or words of small letters, digits and _ . , - as ids of failure modes are.
constexpr bool is_judged_words(std::string_view words) {
  return std::ranges::all_of(words, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_' || c == '.' || c == ',' ||
           c == '-';
  });
}
inline constexpr std::size_t kTagsBytes = 4096;
void judged_fields(auto& v, Is<AttemptFacts> auto& f) {
  constexpr std::string_view kWhy = "has other than small letters, digits, _, ., comma and -";
  v("gates", f.gates, {.bytes = limits::kNameBytes, .optional = true});
  v.require(is_judged_words(f.gates), "gates", kWhy);
  v("score", f.score, {.bytes = limits::kNameBytes, .optional = true});
  v.require(is_judged_words(f.score), "score", kWhy);
  v("tags", f.tags, {.bytes = kTagsBytes, .optional = true});
  v.require(is_judged_words(f.tags), "tags", kWhy);
  v("configuration", f.configuration, {.bytes = limits::kNameBytes, .optional = true});
  v.require(is_judged_words(f.configuration), "configuration", kWhy);
  v("networked", f.networked, kOptional);
}
void fields(auto& v, Is<AttemptFacts> auto& f) {
  v("fault", f.fault, kOptional);
  v("agent_exit", f.agent_exit, {.most = 255, .optional = true});
  other_fields(v, f);
}
}  // namespace proctor
