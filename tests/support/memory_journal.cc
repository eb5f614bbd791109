#include "tests/support/memory_journal.h"

#include <algorithm>
#include <string_view>

#include "coordinator/core/notes.h"

namespace proctor::testing {

using Stored = AttemptState;

void MemoryJournal::write(const JournalWrite& fact) {
  std::visit([this](const auto& f) { put(f); }, fact);
}

void MemoryJournal::put(const AttemptIntent& f) {
  RestoredAttempt& a = attempts_[f.attempt];
  a.attempt = f.attempt;
  a.state = Stored::kReserving;
  a.seq = f.seq;
  a.ask = f.ask;
  a.denied_scope = {};
  a.short_by = {};
}

void MemoryJournal::put(const AttemptGranted& f) {
  RestoredAttempt& a = attempts_.at(f.attempt);
  a.state = Stored::kGranted;
  a.worker = f.worker;
  a.boot = f.boot;
  a.granted_at = f.at;
}

void MemoryJournal::put(const AttemptDenied& f) {
  RestoredAttempt& a = attempts_.at(f.attempt);
  a.state = Stored::kDenied;
  a.denied_scope = f.scope;
  a.short_by = f.short_by;
}

void MemoryJournal::put(const AttemptResult& f) {
  RestoredAttempt& a = attempts_.at(f.attempt);
  if (a.state != Stored::kLost) a.state = Stored::kFinished;
  a.has_result = true;
  a.sets_outcome = f.sets_outcome;
  a.infrastructure = f.infrastructure;
  a.overload = f.overload;
  a.outcome = f.outcome;
  a.termination = f.termination;
  a.usage = f.usage;
  if (f.sets_outcome) put(RunEnded{f.attempt.run, f.attempt, f.outcome});
}

void MemoryJournal::put(const AttemptSettled& f) {
  RestoredAttempt& a = attempts_.at(f.attempt);
  a.settled = true;
  a.charged = f.charged;
  a.overrun = f.overrun;
}

void MemoryJournal::put(const AttemptVoided& f) {
  attempts_.at(f.attempt).state = Stored::kVoided;
}
void MemoryJournal::put(const AttemptLost& f) {
  attempts_.at(f.attempt).state = Stored::kLost;
}
void MemoryJournal::put(const AttemptCancelled& f) {
  attempts_.at(f.attempt).state = Stored::kCancelled;
}
void MemoryJournal::put(const RunParked& f) {
  parked_[f.run] = {f.run, f.scope, f.short_by};
}

void MemoryJournal::put(const RunEnded& f) {
  parked_.erase(f.run);
  ended_.emplace(f.run, EndedRun{f.run, f.attempt.no, f.outcome});
}

void MemoryJournal::put(const RunReopened& f) {
  attempts_.at(f.attempt).sets_outcome = false;
  ended_.erase(f.attempt.run);
}

void MemoryJournal::put(const Note& f) {
  const std::string_view kind = f.kind;
  if (kind == BudgetAlert::kNote) alerts_.push_back(fact_of<BudgetAlert>(f).value());
  if (kind == RunDominates::kNote) dominant_.push_back(fact_of<RunDominates>(f).value());
  if (std::ranges::any_of(kSchedulerNotes, [&](const char* k) { return kind == k; }))
    standing_.push_back(f);
}

RestoredState MemoryJournal::state() const {
  RestoredState out;
  for (const auto& [id, attempt] : attempts_) out.attempts.push_back(attempt);
  for (const auto& [run, parked] : parked_) out.parked.push_back(parked);
  for (const auto& [run, ended] : ended_) out.ended.push_back(ended);
  out.standing = standing_;
  out.alerts = alerts_;
  out.dominant = dominant_;
  out.reviews = reviews_;
  return out;
}

std::vector<ScopeSpec> MemoryJournal::caps(std::vector<ScopeSpec> planned) const {
  for (const auto& [scope, cap] : caps_) planned[scope.raw()].cap = cap;
  return planned;
}

}  // namespace proctor::testing
