#include "coordinator/core/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/base/assert.h"

namespace proctor {
namespace {
constexpr std::size_t kScanPerStep = 20'000;  // candidates looked at in one step: keeps it short
constexpr std::uint8_t kAttemptsMax = 250;
std::size_t index_of(RunOutcome o) {
  return static_cast<std::size_t>(o);
}
std::vector<std::uint64_t> limits_of(const Rates& rates) {
  std::vector<std::uint64_t> out;
  for (const RateBucket& b : rates.buckets()) out.push_back(b.limit);
  return out;
}
}  // namespace

Scheduler::Scheduler(PlanView plan, SchedulerSettings settings, Epoch epoch)
    : plan_(std::move(plan)),
      settings_(std::move(settings)),
      epoch_(epoch),
      queue_(plan_),
      alerts_(settings_.watch.alerts),
      rates_(limits_of(settings_.rates), Epoch(1) < epoch) {
  for (const ScopeSpec& s : plan_.scopes) balances_.push_back({s.cap, {}, {}});
  phases_.assign(plan_.runs.size(), RunPhase::kQueued);
  attempts_made_.assign(plan_.runs.size(), 0);
  failures_.assign(plan_.runs.size(), 0);
}

std::vector<Command> Scheduler::start(Time now) {
  PROCTOR_ASSERT(!started_);
  started_ = true;
  now_ = now;
  for (auto& [run, attempt] : live_) {
    attempt.since = now.mono;
    if (attempt.state == State::kReserving)
      reserve_.ops.push_back({{attempt.id, attempt.seq}, attempt.ask, plan_.path(run)});
    if (attempt.state == State::kSettling)
      settle_.ops.push_back({{attempt.id, attempt.seq}, attempt.cost.total()});
  }
  for (std::uint32_t s = 0; s < balances_.size(); ++s) {
    alerts_.rearm(ScopeId(s), balances_[s]);
    tell_spent(ScopeId(s));  // of a journal from before alerts, nothing otherwise
  }
  out_.push_back(ArmTimer{now.mono + settings_.tick});
  finish_step();
  return std::exchange(out_, {});
}

std::vector<Command> Scheduler::on(const Event& event, Time now) {
  PROCTOR_ASSERT(started_);
  PROCTOR_ASSERT(now_.mono <= now.mono);
  now_ = now;
  std::visit([this](const auto& e) { handle(e); }, event);
  dispatch();
  finish_step();
  return std::exchange(out_, {});
}

// ---------------------------------------------------------------- what a step gathered

void Scheduler::write(JournalWrite w, std::optional<After> after) {
  writes_.push_back(std::move(w));
  if (after) afters_.push_back(*after);
}

void Scheduler::finish_step() {
  if (!writes_.empty()) {
    awaiting_.emplace_back(next_seq_, std::exchange(afters_, {}));
    out_.push_back(Persist{next_seq_++, std::exchange(writes_, {})});
  }
  if (!reserve_.ops.empty()) out_.push_back(std::exchange(reserve_, {}));
  if (!settle_.ops.empty()) out_.push_back(std::exchange(settle_, {}));
  if (!voids_.ops.empty()) out_.push_back(std::exchange(voids_, {}));
  if (!forget_.ids.empty()) out_.push_back(std::exchange(forget_, {}));
  for (auto& [w, runs] : std::exchange(assigns_, {}))
    out_.push_back(AssignRuns{roster_.at(w).id, std::move(runs)});
  for (auto& [w, attempts] : std::exchange(acks_, {}))
    out_.push_back(AckResults{roster_.at(w).id, std::move(attempts)});
  for (auto& [w, attempts] : std::exchange(cancels_, {}))
    out_.push_back(
        CancelAttempts{roster_.at(w).id, std::move(attempts), "cancelled by the operator"});
  const bool idle = live_.empty() && awaiting_.empty();
  if (idle && !end_told_ && (queue_.empty() || mode_ != Mode::kRun)) {
    end_told_ = true;
    out_.push_back(CampaignEnded{queue_.empty()});
  }
#ifndef NDEBUG
  check();
#endif
}

void Scheduler::handle(const Persisted& e) {
  while (!awaiting_.empty() && awaiting_.front().first <= e.seq) {
    const std::vector<After> allowed = std::move(awaiting_.front().second);
    awaiting_.pop_front();
    for (const After& after : allowed) perform(after);
  }
}

void Scheduler::perform(const After& after) {
  switch (after.step) {
    case Step::kAckLate:
      late_writing_.erase(after.attempt);
      acks_[after.worker].push_back(after.attempt);
      return;
    case Step::kForget:
      forget_.ids.push_back({after.attempt, after.seq});
      if (Attempt* a = live(after.attempt);
          a != nullptr && a->state == State::kClosing && a->seq == after.seq)
        close(after.attempt);
      return;
    case Step::kAsk:
    case Step::kAssign:
    case Step::kAckAndSettle:
    case Step::kSettleLost:
      break;
  }
  Attempt* a = live(after.attempt);
  PROCTOR_ASSERT(a != nullptr);
  switch (after.step) {
    case Step::kAsk:
      PROCTOR_ASSERT(a->state == State::kIntent);
      a->state = State::kReserving;
      reserve_.ops.push_back({{a->id, a->seq}, a->ask, plan_.path(a->id.run)});
      return;
    case Step::kAssign:
      if (a->state == State::kGranting) assign_or_void(*a);
      return;  // its result may have overtaken it: then there is nothing to send
    case Step::kAckAndSettle:
      for (const WorkerIndex w : std::exchange(a->ack_to, {})) acks_[w].push_back(a->id);
      [[fallthrough]];
    case Step::kSettleLost:
      PROCTOR_ASSERT(a->state == State::kFinishing);
      a->state = State::kSettling;
      settle_.ops.push_back({{a->id, a->seq}, a->cost.total()});
      return;
    case Step::kForget:
    case Step::kAckLate:
      return;  // above
  }
}

// ---------------------------------------------------------------- choosing what runs

void Scheduler::dispatch() {
  if (mode_ != Mode::kRun) return;
  const auto judge_run = [this](RunId run) { return judge(run); };
  for (std::size_t taken = 0; 0 < roster_.free_slots() && taken < kScanPerStep; ++taken) {
    const std::optional<RunId> run = queue_.next(judge_run, kScanPerStep);
    if (!run) return;
    if (!park_if_known_short(*run)) begin_attempt(*run);
  }
}

void Scheduler::begin_attempt(RunId run) {
  Attempt a;
  if (const auto asked = denied_.find(run); asked != denied_.end()) {
    a.id = asked->second.attempt;  // a denied ask is final for its id: same attempt, next ask
    a.seq = asked->second.seq + 1;
    denied_.erase(asked);
  } else {
    PROCTOR_ASSERT(attempts_made_[run.raw()] < kAttemptsMax);
    a.id = {run, AttemptNo(++attempts_made_[run.raw()])};
  }
  a.ask = plan_.task_of(run).ask;
  const std::optional<WorkerIndex> worker = roster_.pick(plan_.task_of(run).needs);
  PROCTOR_ASSERT(worker.has_value());
  a.worker = worker;
  a.since = now_.mono;
  roster_.hold(*worker);
  for (const ScopeId s : plan_.path(run))
    balances_[s.raw()].reserved = balances_[s.raw()].reserved + a.ask;
  phases_[run.raw()] = RunPhase::kActive;
  write(AttemptIntent{a.id, a.seq, a.ask, now_.wall}, After{Step::kAsk, a.id, a.seq, 0});
  PROCTOR_ASSERT(live_.emplace(run, std::move(a)).second);
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

void Scheduler::granted(Attempt& a) {
  // Restored from a journal: its worker is chosen now.
  if (!a.worker && mode_ == Mode::kRun) {
    a.worker = roster_.pick(plan_.task_of(a.id.run).needs);
    if (a.worker) roster_.hold(*a.worker);
  }
  if (!a.worker || mode_ != Mode::kRun)
    return void_attempt(a, a.worker ? "the campaign stops" : "no worker is free for it");
  a.state = State::kGranting;
  a.since = now_.mono;
  write(AttemptGranted{a.id, roster_.at(*a.worker).id, roster_.at(*a.worker).boot, now_.wall},
        After{Step::kAssign, a.id, a.seq, *a.worker});
}

void Scheduler::denied(Attempt& a, const ReserveAnswer& answer) {
  const RunId run = a.id.run;
  write(AttemptDenied{a.id, a.seq, answer.short_scope, answer.short_by, now_.wall},
        After{Step::kForget, a.id, a.seq, 0});
  release_slot(a);
  for (const ScopeId s : plan_.path(run)) {
    balances_[s.raw()].reserved = balances_[s.raw()].reserved - a.ask;
    money_back(s);
  }
  const ScopeBalance& b = balances_[answer.short_scope.raw()];
  denied_[run] = {a.id, a.seq};
  if (b.reserved == MicroUsd::zero()) {
    known_short_[answer.short_scope] = {b.spent, a.ask};
    phases_[run.raw()] = RunPhase::kParked;
    ++parked_;
    write(RunParked{run, answer.short_scope, answer.short_by, now_.wall});
  } else {
    // The ledger holds more than these books say.  It is right: nobody asks for as much again
    // before some money came back, or question and refusal would follow each other for ever.
    refused_[answer.short_scope] = a.ask;
    phases_[run.raw()] = RunPhase::kQueued;
    queue_.put_back(run);
  }
  live_.erase(run);
}

void Scheduler::assign_or_void(Attempt& a) {
  const WorkerState& w = roster_.at(*a.worker);
  if (!w.present || w.suspect || mode_ != Mode::kRun)
    return void_attempt(a, mode_ == Mode::kRun ? "its worker left" : "the campaign stops");
  a.state = State::kAssigned;
  a.since = now_.mono;
  assigns_[*a.worker].push_back({a.id, a.ask});
}

void Scheduler::void_attempt(Attempt& a, const std::string& reason) {
  write(AttemptVoided{a.id, reason, now_.wall});
  release_slot(a);
  a.state = State::kClosing;
  voids_.ops.push_back({{a.id, a.seq}});
}

void Scheduler::handle(const Voided& e) {
  for (const AskId& id : e.ids) {
    Attempt* a = live(id.attempt);
    if (a == nullptr || a->state != State::kClosing) continue;
    for (const ScopeId s : plan_.path(id.attempt.run)) {
      balances_[s.raw()].reserved = balances_[s.raw()].reserved - a->ask;
      money_back(s);
    }
    forget_.ids.push_back(id);
    close(id.attempt);
  }
}

// The attempt is over and paid for.  Its run comes up again unless it has ended.
void Scheduler::close(const AttemptId& id) {
  live_.erase(id.run);
  if (phases_[id.run.raw()] != RunPhase::kActive) return;
  phases_[id.run.raw()] = RunPhase::kQueued;
  queue_.put_back(id.run);
}

// ---------------------------------------------------------------- small parts

Scheduler::Attempt* Scheduler::live(const AttemptId& id) {
  const auto it = live_.find(id.run);
  return it != live_.end() && it->second.id.no == id.no ? &it->second : nullptr;
}

bool Scheduler::assigned_to(const Attempt& a, WorkerIndex w) const {
  return a.worker == w && (a.state == State::kAssigned || a.state == State::kRunning);
}

void Scheduler::release_slot(Attempt& a) {
  if (!a.worker) return;
  const WorkerIndex w = *std::exchange(a.worker, std::nullopt);
  roster_.release(w);
  if (0 < roster_.at(w).free()) queue_.wake_workers(roster_.at(w).has);
}

void Scheduler::note(std::string kind, std::optional<AttemptId> attempt, const std::string& text) {
  std::optional<RunId> run;
  std::optional<AttemptNo> no;
  if (attempt) {
    run = attempt->run;
    no = attempt->no;
  }
  write(Note{now_.wall, std::move(kind), run, no, text});
}

Scheduler::Counts Scheduler::counts() const {
  Counts c;
  c.queued = queue_.size();
  c.ended = ended_;
  c.parked = parked_;
  c.removed = removed_;
  c.active = plan_.runs.size() - c.queued - c.ended_total() - c.parked - c.removed;
  return c;
}

void Scheduler::end_run(RunId run, RunOutcome outcome) {
  PROCTOR_ASSERT(phases_[run.raw()] == RunPhase::kActive);
  phases_[run.raw()] = RunPhase::kEnded;
  ++ended_[index_of(outcome)];
}

void Scheduler::check() const {
  PROCTOR_ASSERT(ended_[0] + ended_[1] + ended_[2] + ended_[3] + parked_ + queue_.size() <=
                 plan_.runs.size());
  MicroUsd out = MicroUsd::zero();
  for (const auto& [run, a] : live_) {
    PROCTOR_ASSERT(a.id.run == run);
    PROCTOR_ASSERT(a.id.no.raw() <= attempts_made_[run.raw()]);
    // Settled, its record not yet durable: the money is no longer out.
    if (a.state != State::kClosing) out = out + a.ask;
    if (a.state == State::kAssigned)
      PROCTOR_ASSERT(a.worker.has_value() || a.granted_to.has_value());
  }
  PROCTOR_ASSERT(out <= balances_[0].reserved);
  for (const ScopeBalance& b : balances_) {
    PROCTOR_ASSERT(MicroUsd::zero() <= b.reserved);
    PROCTOR_ASSERT(MicroUsd::zero() <= b.spent);
    PROCTOR_ASSERT(b.spent <= b.cap);
  }
}

}  // namespace proctor
