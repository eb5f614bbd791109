#include "coordinator/journal/journal_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/parse.h"

namespace proctor::journal {

namespace {

template <class E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<AttemptState, 7> kStates{{{AttemptState::kReserving, "reserving"},
                                          {AttemptState::kDenied, "denied"},
                                          {AttemptState::kGranted, "granted"},
                                          {AttemptState::kFinished, "finished"},
                                          {AttemptState::kVoided, "voided"},
                                          {AttemptState::kLost, "lost"},
                                          {AttemptState::kCancelled, "cancelled"}}};
constexpr Names<RunOutcome, 4> kOutcomes{{{RunOutcome::kSuccess, "success"},
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

template <class E, std::size_t N>
std::string_view name_in(const Names<E, N>& names, E value) {
  for (const auto& [v, name] : names) {
    if (v == value) return name;
  }
  PROCTOR_ASSERT(false);
  return {};
}
template <class E, std::size_t N>
std::optional<E> value_in(const Names<E, N>& names, std::string_view name) {
  for (const auto& [v, n] : names) {
    if (n == name) return v;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(AttemptState state) {
  return name_in(kStates, state);
}
std::string_view name_of(RunOutcome outcome) {
  return name_in(kOutcomes, outcome);
}
std::string_view name_of(Termination termination) {
  return name_in(kTerminations, termination);
}
std::optional<AttemptState> attempt_state(std::string_view name) {
  return value_in(kStates, name);
}
std::optional<RunOutcome> run_outcome(std::string_view name) {
  return value_in(kOutcomes, name);
}
std::optional<Termination> termination(std::string_view name) {
  return value_in(kTerminations, name);
}

std::string metered_text(const Usage& usage) {
  std::string out;
  const std::size_t said = metered_said(usage);
  for (std::size_t i = 0; i < said; ++i)
    out += (i == 0 ? "" : " ") + std::to_string(usage.*kMeteredCounters[i].second);
  return out;
}

bool read_metered(std::string_view text, Usage& out) {
  for (std::size_t i = 0; i < kMeteredCounters.size(); ++i) {
    if (0 < i && text.empty() && std::ranges::find(kMeteredSizes, i) != kMeteredSizes.end())
      return true;
    if (0 < i && !take_word(text, " ")) return false;
    if (!take_number(text, out.*kMeteredCounters[i].second)) return false;
  }
  return text.empty();
}

}  // namespace proctor::journal
