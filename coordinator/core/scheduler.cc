#include "coordinator/core/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/base/result.h"

namespace proctor {
namespace {
constexpr std::size_t kScanPerStep = 20'000;  // candidates looked at in one step: keeps it short
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
      faults_(settings_.retries.park_after),
      gates_(plan_),
      alerts_(settings_.watch.alerts),
      rates_(limits_of(settings_.rates), Epoch(1) < epoch) {
  for (const ScopeSpec& s : plan_.scopes) balances_.push_back({s.cap, {}, {}});
  metered_.assign(plan_.scopes.size(), MicroUsd::zero());
  phases_.assign(plan_.runs.size(), RunPhase::kQueued);
  attempts_made_.assign(plan_.runs.size(), 0);
  owners_.assign(plan_.runs.size(), 0);
  failures_.assign(plan_.runs.size(), 0);
  parked_rows_.assign(plan_.runs.size(), false);
  queue_.shut_from(gates_.shut_from());
}

std::vector<Command> Scheduler::start(Time now) {
  PROCTOR_ASSERT(!started_);
  started_ = true;
  started_at_ = now.wall;
  now_ = now;
  roster_.set_time(now.wall);
  for (WorkerIndex w = 0; w < roster_.size(); ++w)
    roster_.edit(w, [&](WorkerState& s) { s.left_at = now.mono; });
  forget_at_ = now.mono;
  restore_waits();
  suspension_told_ = suspended_;
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
  end_waits();
  look_at_gates();
  out_.push_back(ArmTimer{now.mono + settings_.tick});
  finish_step();
  return std::exchange(out_, {});
}

std::vector<Command> Scheduler::on(const Event& event, Time now) {
  PROCTOR_ASSERT(started_);
  PROCTOR_ASSERT(now_.mono <= now.mono);
  now_ = now;
  roster_.set_time(now.wall);
  std::visit([this](const auto& e) { handle(e); }, event);
  end_waits();
  look_at_gates();
  dispatch();
  end_waits();  // it may have parked the last that was in line
  finish_step();
  return std::exchange(out_, {});
}

// ---------------------------------------------------------------- what a step gathered

void Scheduler::write(JournalWrite w, std::optional<After> after) {
  writes_.push_back(std::move(w));
  gates_stale_ = true;
  if (after) afters_.push_back(*after);
}

void Scheduler::finish_step() {
  if (!writes_.empty()) {
    awaiting_.push_back({next_seq_, std::exchange(afters_, {}), {}});
    out_.push_back(Persist{next_seq_++, std::exchange(writes_, {})});
  }
  // "It was so already" must be durable too when it is told.
  for (Answer& answer : std::exchange(answers_, {})) {
    if (awaiting_.empty()) {
      out_.emplace_back(std::move(answer));
    } else {
      awaiting_.back().answers.push_back(std::move(answer));
    }
  }
  if (!raised_.empty() || !reviewed_.empty())
    out_.push_back(RaiseCaps{std::exchange(raised_, {}), std::exchange(reviewed_, {})});
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
  const auto is_left = [this](const auto& live) { return is_out_of_reach(live.second); };
  const bool idle =
      awaiting_.empty() &&
      (live_.empty() || (mode_ == Mode::kCancel && std::ranges::all_of(live_, is_left)));
  const bool all_done = queue_.empty() && backoff_.empty() && held_ == 0 && live_.empty();
  const bool at_gate = !settings_.stays_at_gate && gate_check_ && backoff_.empty() && held_ == 0 &&
                       live_.empty() && 0 < queue_.size() && queue_.size() == queue_.held_back();
  if (idle && !end_told_ && (all_done || at_gate || mode_ != Mode::kRun)) {
    end_told_ = true;
    out_.push_back(CampaignEnded{all_done, !all_done && at_gate && mode_ == Mode::kRun});
  }
  // A large state at a pace, at which a step pays for a look at 16 entries.
  unchecked_ += 16;
  if (live_.size() + balances_.size() <= unchecked_) check();
}

void Scheduler::handle(const Persisted& e) {
  while (!awaiting_.empty() && awaiting_.front().seq <= e.seq) {
    Awaiting allowed = std::move(awaiting_.front());
    awaiting_.pop_front();
    for (const After& after : allowed.afters) perform(after);
    for (Answer& answer : allowed.answers) out_.emplace_back(std::move(answer));
  }
}

void Scheduler::perform(const After& after) {
  switch (after.step) {
    case Step::kAckLate:
      late_writing_.erase(after.attempt);
      acks_[after.worker].push_back(after.attempt);
      return;
    case Step::kObey:
      return obey(after.seq);
    case Step::kReviewed: {
      const Reviewed r = reviewing_.front();
      reviewing_.pop_front();
      reviewed_.resize(balances_.size());
      plan_.each_scope(r.run,
                       [&](ScopeId s) { reviewed_[s.raw()] = reviewed_[s.raw()] + r.charged; });
      return;
    }
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
    case Step::kObey:
    case Step::kReviewed:
      return;  // above
  }
}

// ---------------------------------------------------------------- choosing what runs

void Scheduler::dispatch() {
  if (mode_ != Mode::kRun || paused_) return;
  // A run that an earlier life parked is in line to be asked for again, and that takes a worker.
  // Where the books say that the ledger can only refuse, it is parked as it was: else a campaign
  // without workers never ends.  A shared envelope is always asked: others may have raised it.
  for (std::uint32_t r = 0; live_.empty() && parked_ < rows_parked_ + shut_.size(); ++r) {
    if (r == phases_.size()) break;
    if (phases_[r] != RunPhase::kQueued || !parked_rows_[r]) continue;
    const bool refused = std::ranges::any_of(plan_.path(RunId(r)), [&](ScopeId s) {
      return s != plan_.shared && balances_[s.raw()].free() < plan_.task_of(RunId(r)).ask;
    });
    if (!refused) continue;
    queue_.remove(RunId(r));
    phases_[r] = RunPhase::kParked;
    ++parked_;
  }
  const auto judge_run = [this](RunId run) { return judge(run); };
  const auto any_room = [this] {
    return 0 < roster_.free_slots() || (kept_ && roster_.at(*kept_).is_empty());
  };
  for (std::size_t taken = 0; any_room() && taken < kScanPerStep; ++taken) {
    const std::optional<RunId> run = queue_.next(judge_run, kScanPerStep);
    if (!run) break;
    if (!park_if_known_short(*run)) begin_attempt(*run);
  }
  keep_for_suspects();
}

// ---------------------------------------------------------------- small parts

Scheduler::Attempt* Scheduler::live(const AttemptId& id) {
  const auto it = live_.find(id.run);
  return it != live_.end() && it->second.id.no == id.no ? &it->second : nullptr;
}

bool Scheduler::assigned_to(const Attempt& a, WorkerIndex w) const {
  return a.worker == w && (a.state == State::kAssigned || a.state == State::kRunning);
}

void Scheduler::list_at(WorkerIndex w, RunId run) {
  if (at_worker_.size() <= w) at_worker_.resize(w + 1);
  at_worker_[w].insert(run);
}

// Assigned to it, or waiting since an earlier life for its word; by run.
std::vector<AttemptId> Scheduler::attempts_at(WorkerIndex w) const {
  std::vector<AttemptId> out;
  if (at_worker_.size() <= w) return out;
  for (const RunId run : at_worker_[w]) {
    const auto it = live_.find(run);
    if (it == live_.end()) continue;
    const Attempt& a = it->second;
    const bool unclaimed = a.state == State::kAssigned && !a.worker && a.granted_to == w;
    if (assigned_to(a, w) || unclaimed) out.push_back(a.id);
  }
  return out;
}

void Scheduler::release_slot(Attempt& a) {
  if (!a.worker) return;
  const WorkerIndex w = *std::exchange(a.worker, std::nullopt);
  at_worker_[w].erase(a.id.run);
  roster_.release(w);
  if (a.alone && kept_ != w) roster_.edit(w, [](WorkerState& s) { s.kept = false; });
  wake(w);
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
  c.in_backoff = backoff_.size();
  c.queued = queue_.size() + c.in_backoff;
  c.ended = ended_;
  c.ended_removed = ended_removed_;
  c.parked = parked_;
  c.faulty = shut_.size();
  c.removed = removed_;
  c.cancelled = cancelled_;
  c.held = held_;
  c.active =
      plan_.runs.size() - c.queued - c.ended_total() - c.parked - c.removed - c.cancelled - c.held;
  return c;
}

// Of an attempt with a result.
Scheduler::Invalid Scheduler::invalid_by(Termination termination, bool infrastructure,
                                         bool overload) {
  if (overload) return Invalid::kOverloaded;
  if (infrastructure) return Invalid::kCounted;
  return termination == Termination::kInfrastructure ? Invalid::kUncounted : Invalid::kOfTheAgent;
}

void Scheduler::check() {
  unchecked_ = 0;
  PROCTOR_ASSERT(ended_[0] + ended_[1] + ended_[2] + ended_[3] + parked_ + queue_.size() +
                     backoff_.size() + cancelled_ + held_ + removed_ <=
                 plan_.runs.size());
  MicroUsd out = MicroUsd::zero(), metered = MicroUsd::zero();
  for (const auto& [run, a] : live_) {
    PROCTOR_ASSERT(a.counted == a.used());
    metered = metered + a.counted;
    PROCTOR_ASSERT(a.id.run == run);
    PROCTOR_ASSERT(a.id.no.raw() <= attempts_made_[run.raw()]);
    // Settled, its record not yet durable: the money is no longer out.
    if (a.state != State::kClosing) out = out + a.ask;
    if (a.state == State::kAssigned)
      PROCTOR_ASSERT(a.worker.has_value() || a.granted_to.has_value());
  }
  PROCTOR_ASSERT(metered == metered_[0]);
  PROCTOR_ASSERT(out <= balances_[0].reserved);
  for (const ScopeBalance& b : balances_) {
    PROCTOR_ASSERT(MicroUsd::zero() <= b.reserved);
    PROCTOR_ASSERT(MicroUsd::zero() <= b.spent && b.spent <= b.cap);
  }
}

}  // namespace proctor
