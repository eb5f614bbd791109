// The scheduler's half that deals with one attempt from its ask to its end: what the ledger said,
// and where it goes.
#include <utility>

#include "common/base/result.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {
constexpr std::uint16_t kAttemptsMax = 60'000;
}  // namespace

void Scheduler::begin_attempt(RunId run) {
  AttemptIntent intent;
  if (const auto asked = denied_.find(run); asked != denied_.end()) {
    // A denied ask is final for its id: same attempt, next ask.
    intent.attempt = asked->second.attempt;
    intent.seq = asked->second.seq + 1;
  } else {
    PROCTOR_ASSERT(attempts_made_[run.raw()] < kAttemptsMax);
    intent.attempt = {run, AttemptNo(attempts_made_[run.raw()] + 1U)};
  }
  intent.ask = plan_.task_of(run).ask;
  intent.at = now_.wall;
  const std::optional<WorkerIndex> worker = worker_for(run);
  PROCTOR_ASSERT(worker.has_value());
  phases_[run.raw()] = RunPhase::kActive;  // the queue has given it out
  if (parked_rows_[run.raw()]) record(RunUnparked{run});
  record(intent, After{Step::kAsk, intent.attempt, intent.seq, 0});
  Attempt& a = live_.at(run);
  a.caps = caps_;
  a.since = now_.mono;
  seat(a, *worker);
}

// ---------------------------------------------------------------- what the ledger said

void Scheduler::handle(const Reserved& e) {
  for (const Reserved::Answer& got : e.answers) {
    Attempt* a = live(got.id.attempt);
    if (a == nullptr || a->state != State::kReserving || a->seq != got.id.seq)
      continue;  // repeated
    if (got.answer.kind == ReserveAnswer::Kind::kGranted)
      granted(*a);
    else
      denied(*a, got.answer);
  }
}

// Why what has been asked for is not started after all; empty: it is.
std::string Scheduler::why_not_now(RunId run) const {
  if (mode_ != Mode::kRun) return "the campaign stops";
  if (paused_) return "the campaign is paused";
  if (is_shut(run)) return "its task or method is parked";
  return phases_[run.raw()] == RunPhase::kCancelled ? "its run was cancelled" : "";
}

void Scheduler::granted(Attempt& a) {
  const std::string held_back = why_not_now(a.id.run);
  if (!held_back.empty()) return void_attempt(a, held_back);
  // Restored from a journal: its worker is chosen now.
  if (const auto worker = a.worker ? std::nullopt : worker_for(a.id.run)) seat(a, *worker);
  if (!a.worker) return void_attempt(a, "no worker is free for it");
  a.state = State::kGranting;
  a.since = now_.mono;
  record(AttemptGranted{a.id, roster_.at(*a.worker).id, roster_.at(*a.worker).boot, now_.wall},
         After{Step::kAssign, a.id, a.seq, *a.worker});
}

void Scheduler::denied(Attempt& a, const ReserveAnswer& answer) {
  const RunId run = a.id.run;
  const MicroUsd ask = a.ask;
  const bool raised_since = a.caps != caps_;
  release_slot(a);
  record(AttemptDenied{a.id, a.seq, answer.short_scope, answer.short_by, now_.wall},
         After{Step::kForget, a.id, a.seq, 0});  // nothing of `a` is left
  for (const ScopeId s : plan_.path(run)) money_back(s);
  ScopeBalance& b = balances_[answer.short_scope.raw()];
  b.elsewhere.may_return = b.elsewhere.may_return || answer.later;  // until that is heard of
  if (phases_[run.raw()] != RunPhase::kActive) {
    // Cancelled meanwhile.
  } else if (raised_since || is_shut(run)) {
    queue_or_shut(run);  // an answer from before the last raise, or money is not what it waits for
  } else if (b.reserved == MicroUsd::zero() && !b.elsewhere.may_return) {
    known_short_[answer.short_scope] = {b.spent, ask};
    park(run, answer.short_scope, answer.short_by);
  } else {
    // The ledger holds more than these books say.  It is right: nobody asks for as much again
    // before some money came back, or question and refusal would follow each other for ever.
    refused_[answer.short_scope] = ask;
    queue_or_shut(run);
  }
}

void Scheduler::assign_or_void(Attempt& a) {
  const std::string held_back = why_not_now(a.id.run);
  if (!held_back.empty()) return void_attempt(a, held_back);
  if (const WorkerState& w = roster_.at(*a.worker); !w.takes_new())
    return void_attempt(a, "its worker is " + standing(w));
  // It is leaving, or serves several campaigns and gave the slot to another when it heard that we
  // know.
  if (const WorkerState& w = roster_.at(*a.worker); w.slots < w.held)
    return void_attempt(a, "its worker has no slot for it any more");
  a.state = State::kAssigned;
  a.since = now_.mono;
  a.sent_to = roster_.at(*a.worker).boot;
  assigns_[*a.worker].push_back({a.id, a.ask});
}

void Scheduler::void_attempt(Attempt& a, const std::string& reason) {
  write(AttemptVoided{a.id, reason, now_.wall});
  release_slot(a);
  a.state = State::kClosing;
  count_metered(a);
  voids_.ops.push_back({{a.id, a.seq}});
}

void Scheduler::handle(const Voided& e) {
  for (const AskId& id : e.ids) {
    Attempt* a = live(id.attempt);
    if (a == nullptr || a->state != State::kClosing) continue;
    give_back(*a);
    for (const ScopeId s : plan_.path(id.attempt.run)) money_back(s);
    forget_.ids.push_back(id);
    close(id.attempt);
  }
}

// The attempt is over and paid for.  Its run comes up again unless it has ended, or waits for
// somebody.
void Scheduler::close(const AttemptId& id) {
  const auto node = live_.extract(id.run);
  const Attempt& a = node.mapped();
  RunPhase& phase = phases_[id.run.raw()];
  if (phase != RunPhase::kActive) return;
  if (a.wait == Millis::zero() || is_shut(id.run)) return queue_or_shut(id.run);
  phase = RunPhase::kBackoff;
  const Instant until = now_.mono + a.wait;
  backoff_[id.run] = {until, WallTime(now_.wall.raw() + a.wait.count()), a.wait_of};
  due_.emplace(until, id.run);
}

}  // namespace proctor
