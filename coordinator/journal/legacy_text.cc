#include "coordinator/journal/legacy_text.h"

#include <algorithm>
#include <string>

#include "common/base/parse.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/notes.h"

namespace proctor::journal {
namespace {
constexpr std::string_view kNoModel = "its model could not be had: ";

std::optional<int> exit_in(std::string_view rationale) {
  for (const std::string_view begin :
       {"the agent ended by itself: ", "the agent could not start: "}) {
    if (!take_word(rationale, begin)) continue;
    std::uint8_t code = 0;
    if (!take_word(rationale, "exit ") || !take_number(rationale, code)) return std::nullopt;
    return code;
  }
  return std::nullopt;
}

// How the patch fitted: the part before the bracket.
std::string patch_word_in(std::string_view rationale) {
  constexpr std::string_view kBegin = "; patch: ";
  // The first: what a stranger can name stands behind it, in the brackets.
  const std::size_t at = rationale.find(kBegin);
  if (at == std::string_view::npos) return "";
  rationale.remove_prefix(at + kBegin.size());
  const std::string_view word = rationale.substr(0, rationale.find(" ("));
  return is_fact_words(word) ? std::string(word) : "";
}

void read_violations(std::string_view rationale, AttemptFacts& out) {
  constexpr std::string_view kBroken = "; violations: ";
  for (std::size_t at = rationale.find(kBroken); at != std::string_view::npos;
       at = rationale.find(kBroken, at + 1)) {
    std::string_view rest = rationale.substr(at + kBroken.size());
    std::uint64_t count = 0;
    if (!take_number(rest, count) || !take_word(rest, " (")) continue;
    out.violations = std::max({out.violations, count, std::uint64_t{1}});
    out.violated = rest.substr(0, rest.rfind(')'));
  }
}

std::string cap_in(std::string_view rationale) {
  if (!take_word(rationale, "budget_exceeded: ")) return "";
  const std::string_view word = rationale.substr(0, rationale.find_first_of(":; "));
  return is_fact_words(word) ? std::string(word) : "";
}
}  // namespace

AttemptFacts facts_in(RunOutcome outcome, Termination termination, std::string_view rationale) {
  AttemptFacts out;
  if (termination == Termination::kAgentUnavailable) out.fault = Fault::kAgent;
  out.agent_exit = exit_in(rationale);
  out.patch = patch_word_in(rationale);
  read_violations(rationale, out);
  out.cap = cap_in(rationale);
  out.no_model = rationale.starts_with(kNoModel);
  out.not_judged =
      outcome == RunOutcome::kInvalid && rationale.find("; not judged: ") != std::string_view::npos;
  return out;
}

void complete_fault(Note& note) {
  Result<FaultFact> fact = fact_of<FaultFact>(note);
  if (!fact.ok() || fact->exit || fact->no_model) return;
  fact->exit = exit_in(fact->cause);
  fact->no_model = fact->cause.starts_with(kNoModel);
  if (fact->exit || fact->no_model) note = note_of(*fact);
}

void complete_joined(std::string_view kind, std::string& detail) {
  if (kind != WorkerJoined::kNote && kind != WorkerJoined::kNoteAgain) return;
  constexpr std::string_view kWith = " with ";
  const std::size_t at = detail.rfind(kWith);
  if (detail.starts_with('{') || at == std::string::npos) return;
  WorkerJoined fact;
  fact.worker = WorkerId(detail.substr(0, at));
  std::string_view slots = std::string_view(detail).substr(at + kWith.size());
  if (take_number(slots, fact.slots) && slots == " slots") detail = note_of(fact).detail;
}
}  // namespace proctor::journal
