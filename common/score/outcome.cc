#include "common/score/outcome.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/result.h"

namespace proctor {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<CheckOutcome, 3> kCheckOutcomes{{{CheckOutcome::kPass, "pass"},
                                                 {CheckOutcome::kFail, "fail"},
                                                 {CheckOutcome::kError, "error"}}};
constexpr Names<RunOutcome, 4> kRunOutcomes{{{RunOutcome::kSuccess, "success"},
                                             {RunOutcome::kFailure, "failure"},
                                             {RunOutcome::kAcceptanceError, "acceptance_error"},
                                             {RunOutcome::kInvalid, "invalid"}}};
constexpr Names<Termination, 10> kTerminations{
    {{Termination::kCompleted, "completed"},
     {Termination::kAgentTimeout, "agent_timeout"},
     {Termination::kBudgetExceeded, "budget_exceeded"},
     {Termination::kResourceLimit, "resource_limit"},
     {Termination::kPolicyStop, "policy_stop"},
     {Termination::kOperatorCancel, "operator_cancel"},
     {Termination::kInfrastructure, "infrastructure"},
     {Termination::kAgentUnavailable, "agent_unavailable"},
     {Termination::kBreaker, "breaker"},
     {Termination::kModelOverloaded, "model_overloaded"}}};

template <class Enum, std::size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [v, name] : names) {
    if (v == value) return name;
  }
  PROCTOR_ASSERT(false);
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const Names<Enum, N>& names, std::string_view text) {
  for (const auto& [v, name] : names) {
    if (name == text) return v;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(CheckOutcome o) {
  return name_of(kCheckOutcomes, o);
}
std::string_view to_string(RunOutcome o) {
  return name_of(kRunOutcomes, o);
}
std::string_view to_string(Termination t) {
  return name_of(kTerminations, t);
}
std::optional<CheckOutcome> check_outcome_from(std::string_view text) {
  return value_of(kCheckOutcomes, text);
}
std::optional<RunOutcome> run_outcome_from(std::string_view text) {
  return value_of(kRunOutcomes, text);
}
std::optional<Termination> termination_from(std::string_view text) {
  return value_of(kTerminations, text);
}

RunOutcome decide(bool identity_consistent, std::span<const std::optional<CheckOutcome>> checks) {
  // An empty suite has no complete acceptance event to rest on (R058, R059): never a vacuous
  // success.
  if (!identity_consistent || checks.empty()) return RunOutcome::kInvalid;
  const auto is = [](CheckOutcome o) {
    return [o](const std::optional<CheckOutcome>& c) { return c == o; };
  };
  if (!std::ranges::all_of(checks, [](const auto& c) { return c.has_value(); }))
    return RunOutcome::kInvalid;
  if (std::ranges::any_of(checks, is(CheckOutcome::kError))) return RunOutcome::kAcceptanceError;
  if (std::ranges::any_of(checks, is(CheckOutcome::kFail))) return RunOutcome::kFailure;
  return RunOutcome::kSuccess;
}

}  // namespace proctor
