#pragma once
// Outcomes of checks and runs, exactly as R057-R061 define them.  Pure.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace proctor {

// pass: executed and met.  fail: executed and violated.  error: did not complete as specified
// (timeout, crash of the harness, missing tool).
enum class CheckOutcome { kPass, kFail, kError };
enum class RunOutcome { kSuccess, kFailure, kAcceptanceError, kInvalid };

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

// Of an attempt that failed before anybody's work was judged, whose failure it looks like.
enum class Fault : std::uint8_t {
  kHost,   // nobody else's: a disk, an engine, a lost connection
  kTask,   // a setup step of the contract failed on the untouched snapshot
  kAgent,  // the method's program could not start
};

std::string_view to_string(CheckOutcome o);
std::string_view to_string(RunOutcome o);
std::string_view to_string(Termination t);
std::optional<CheckOutcome> check_outcome_from(std::string_view text);
std::optional<RunOutcome> run_outcome_from(std::string_view text);
std::optional<Termination> termination_from(std::string_view text);

// What acceptance left behind: one entry per check of the suite, nothing where no complete event
// was recorded.  Missing evidence is invalid, never a failure (Invariant 1, R055, R059).
RunOutcome decide(bool identity_consistent, std::span<const std::optional<CheckOutcome>> checks);

}  // namespace proctor
