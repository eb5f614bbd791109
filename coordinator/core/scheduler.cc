#include "coordinator/core/scheduler.h"

#include <algorithm>

#include "common/wire/messages.h"

namespace proctor {
// The scheduler's part that chooses workers: any with room, or for a run that may be killing its
// workers one that has nothing else (failures.h).

std::uint64_t Scheduler::needs_of(RunId run) const {
  return plan_.needs_of(run) | (poison_.is_suspect(run) ? capability::kAlone : 0) |
         (waits_for_another(run) ? capability::kElsewhere : 0);
}

std::optional<WorkerIndex> Scheduler::worker_for(RunId run) const {
  const std::uint64_t needs = plan_.needs_of(run);
  if (poison_.is_suspect(run)) return roster_.pick_alone(needs);
  const FaultSubject task = task_subject(run), method = method_subject(run);
  if (!faults_.has_row(task) && !faults_.has_row(method)) return roster_.pick(needs);
  const auto other = roster_.pick(needs, [&](const WorkerId& w) {
    return faults_.failed_at(task, w) || faults_.failed_at(method, w);
  });
  return other || waits_for_another(run) ? other : roster_.pick(needs);
}

void Scheduler::remember_owner(RunId run, WorkerIndex w) {
  owners_[run.raw()] = w < UINT16_MAX ? static_cast<std::uint16_t>(w + 1) : 0;
}

bool Scheduler::is_anothers(const AttemptId& id, WorkerIndex w) const {
  if (const auto it = lost_.find(id); it != lost_.end()) return it->second != roster_.at(w).id;
  if (const auto it = live_.find(id.run); it != live_.end() && it->second.id == id)
    return it->second.owner && *it->second.owner != w;
  const std::uint32_t run = id.run.raw();
  return attempts_made_[run] == id.no.raw() && owners_[run] != 0 && owners_[run] - 1U != w;
}

void Scheduler::seat(Attempt& a, WorkerIndex w) {
  a.worker = w;
  a.owner = w;
  remember_owner(a.id.run, w);
  list_at(w, a.id.run);
  roster_.hold(w);
  if (!a.alone) return;
  roster_.edit(w, [](WorkerState& s) { s.kept = true; });
  if (kept_ == w) kept_.reset();
}

void Scheduler::wake(WorkerIndex w) {
  const WorkerState& s = roster_.at(w);
  const std::uint64_t has = s.has | capability::kElsewhere;
  if (s.is_empty()) queue_.wake_workers(has | capability::kAlone);
  if (0 < s.free()) queue_.wake_workers(has);
}

// One worker at a time gets nothing more until it is empty, as long as a suspect waits for one.
void Scheduler::keep_for_suspects() {
  std::optional<std::uint64_t> wanted;
  for (const auto& [needs, runs] : queue_.waiting_for_workers())
    if ((needs & capability::kAlone) != 0)
      wanted = needs & ~(capability::kAlone | capability::kElsewhere);
  if (kept_) {
    const WorkerState& s = roster_.at(*kept_);
    if (wanted && s.takes_new() && (*wanted & ~s.has) == 0) return;
    const WorkerIndex w = *kept_;
    kept_.reset();
    roster_.edit(w, [](WorkerState& x) { x.kept = false; });
    wake(w);
  }
  if (!wanted) return;
  kept_ = roster_.pick_to_keep(*wanted);
  if (!kept_) return;
  roster_.edit(*kept_, [](WorkerState& s) { s.kept = true; });
  wake(*kept_);
}

// The scheduler's part that forgets workers: allocations that come and go bring new names for ever,
// and each look at the roster must not cost what a campaign's whole past costs.

constexpr Millis kForgetEvery{60'000};

bool Scheduler::takes_name(const WorkerId& worker) const {
  return roster_.find(worker) || roster_.names() < kRosterMax;
}

// By places: who is absent, has been for a lease, and stands under no word that must outlive that.
std::vector<bool> Scheduler::forgettable() const {
  std::vector<bool> out(roster_.size());
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    const bool told = s.drained || s.quarantine != WorkerState::Quarantine::kNone ||
                      s.kicked != BootId(0);  // an operator's word, or a quarantine that goes on
    out[w] = roster_.has_place(w) && !s.present && s.held == 0 && !told &&
             s.left_at + settings_.lease <= now_.mono;
  }
  const auto keep = [&](const std::optional<WorkerIndex>& w) {
    if (w) out[*w] = false;
  };
  for (const auto& [run, a] : live_) {
    keep(a.worker);
    keep(a.owner);
    keep(a.granted_to);
    for (const WorkerIndex w : a.ack_to) keep(w);
  }
  for (const Awaiting& step : awaiting_)
    for (const After& after : step.afters)
      if (after.step == Step::kAckLate) keep(after.worker);
  keep(kept_);
  return out;
}

// What a name did stays in the journal, and its attempts that were lost are known by it.
void Scheduler::forget_absent() {
  if (now_.mono < forget_at_) return;
  forget_at_ = now_.mono + kForgetEvery;
  const std::vector<bool> gone = forgettable();
  if (std::ranges::find(gone, true) == gone.end()) return;
  for (WorkerIndex w = 0; w < gone.size(); ++w) {
    if (!gone[w]) continue;
    const WorkerState& s = roster_.at(w);
    if (!last_gone_ || last_gone_->second <= s.since) last_gone_ = {s.id, s.since};
    roster_.forget(w);
    if (w < at_worker_.size()) at_worker_[w].clear();  // it has no place before its first attempt
    doubted_.erase(w);
    unheard_of_.erase(w);
  }
  for (std::uint16_t& owner : owners_)
    if (owner != 0 && gone[owner - 1U]) owner = 0;
}

// The scheduler's part that deals with workers: what they state, and what their silence means.

namespace {
constexpr std::size_t kLossesPerStep = 2'000;  // attempts, about: keeps a step short

// A worker opens an attempt's meter book before it says more than that it has the Assign.
bool tells_of_work(const wire::RunningAttempt& r) {
  return r.sandbox_started || r.stage != wire::Stage::kAssigned || r.usage != Usage{};
}
}  // namespace

void Scheduler::handle(const WorkerSynced& e) {
  if (!takes_name(e.sync.worker)) return;
  const WorkerIndex w = roster_.index_of(e.sync.worker);
  const WorkerState before = roster_.at(w);
  if (std::ranges::find(before.past, e.sync.boot) != before.past.end())
    return;  // the word of a life that is over, late: what it says is not so any more
  const bool reborn = before.present && before.boot != e.sync.boot;
  const bool joined = !before.present;
  const std::uint32_t slots = before.kicked == e.sync.boot ? 0 : e.sync.slots;
  roster_.update(w, e.sync.boot, slots,
                 capability::from_features(e.sync.features, plan_.images, plan_.things), now_.mono);
  if (joined || reborn) write(note_of(WorkerJoined{e.sync.worker, slots, reborn, now_.wall}));
  if (before.suspect) note("worker_back", std::nullopt, e.sync.worker.raw());
  for (const AttemptId& id : poison_.heard_of(e.sync.worker, e.sync.boot))
    withdraw_blame(id, e.sync.worker, e.sync.boot);
  take_back(w, e.sync);
  wire::SyncReply reply = desired(w);
  reconcile(w, reborn ? Life::kNew : Life::kSame, e.sync, reply);
  reconcile_unacked(w, e.sync, reply);
  share_rates(w, e.sync, reply);
  out_.push_back(ReplySync{e.sync.worker, std::move(reply)});
  wake(w);
}

// What every answer to a worker says: the state it is to be in.
wire::SyncReply Scheduler::desired(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  wire::SyncReply reply;
  reply.drain = mode_ != Mode::kRun || (s.kicked != BootId(0) && s.kicked == s.boot);
  reply.suspended = suspended_;
  // What a worker that serves other campaigns too may give this one: it counts what could begin,
  // not what will, for money and rates may say no.  Who lets slots lie is given fewer by the
  // worker.
  const bool takes = mode_ == Mode::kRun && !paused_ && s.takes_new();
  const std::size_t wanted = takes ? queue_.wanting(s.has) : 0;
  reply.demand = static_cast<std::uint32_t>(std::min(wanted, limits::kSlotsMax));
  return reply;
}

// Attempts that were assigned to the worker and that it never began: their money comes back.  A
// worker that has slots and gives attempts back said that it could run them, and could not: that
// counts like a failure of its host, so that nobody is offered the same run for ever.  Not where it
// says with that what of a host it lacks: it could not know, and is not offered such a run again.
void Scheduler::take_back(WorkerIndex w, const wire::Sync& sync) {
  bool any = false;
  for (const AttemptId& id : sync.declined) {
    Attempt* a = live(id);
    if (a == nullptr || a->has_begun()) continue;
    const bool sent = assigned_to(*a, w) && a->sent_to.value_or(sync.boot) == sync.boot;
    const bool unclaimed = a->state == State::kAssigned && !a->worker && a->granted_to == w &&
                           a->granted_boot == sync.boot;
    if (!sent && !unclaimed) continue;
    void_attempt(*a, "worker " + sync.worker.raw() + " gave it back");
    const std::uint64_t lacks = plan_.needs_of(id.run) & ~roster_.at(w).has;
    any = any || (lacks & capability::kThings) == 0;
  }
  if (any && 0 < sync.slots) count_host_failure(w);
}

// Compares what the worker says it runs with what we think it runs, and heals either side.
void Scheduler::reconcile(WorkerIndex w, Life life, const wire::Sync& sync,
                          wire::SyncReply& reply) {
  std::set<AttemptId> known;
  for (const wire::RunningAttempt& r : sync.running) {
    Attempt* a = live(r.attempt);
    const bool wanted =
        a != nullptr && (a->state == State::kGranting || a->state == State::kAssigned ||
                         a->state == State::kRunning);
    const bool owned = a != nullptr && a->owner == w;
    if (a != nullptr && a->owner && !owned) doubt_sender(w, r.attempt);
    if (is_unheard_of(r.attempt)) tell_unheard_of(w, r.attempt);
    if (!wanted || !owned) {
      reply.cancel.push_back(r.attempt);  // another attempt has its place, or nobody asked for it
      continue;
    }
    if (!a->worker) {  // adopted after a restart of ours
      seat(*a, w);
      note("adopted", a->id, sync.worker.raw());
    }
    if (a->state == State::kGranting) {  // our grant was on its way to disk: the worker is faster
      known.insert(r.attempt);
      continue;
    }
    a->state = State::kRunning;
    a->since = now_.mono;
    known.insert(r.attempt);
    if (a->begun_in && *a->begun_in != sync.boot && !outlived(*a, w)) {
      reply.cancel.push_back(r.attempt);
      continue;
    }
    if (r.sandbox_started) a->begun_in = roster_.at(w).boot;
    a->at_work = a->at_work || tells_of_work(r);
    watch_run(*a, r);
    // Until it obeys; an order that is lost is in the next answer too.
    if (r.stage <= wire::Stage::kAgent &&
        settings_.watch.dominance.action == BudgetWatch::Dominance::Action::kStop &&
        dominant_ids_.contains(r.attempt))
      reply.stop.push_back(r.attempt);
    if (mode_ == Mode::kCancel || phases_[r.attempt.run.raw()] == RunPhase::kCancelled)
      reply.cancel.push_back(r.attempt);  // until it obeys
  }
  for (const AttemptId& id : sync.unacked) known.insert(id);
  reconcile_missing(w, life, sync, known);
}

// Attempts that should be at this worker and that it does not mention.
void Scheduler::reconcile_missing(WorkerIndex w, Life life, const wire::Sync& sync,
                                  const std::set<AttemptId>& known) {
  bool never_began = false;
  for (const AttemptId& id : attempts_at(w)) {
    if (known.contains(id)) continue;
    Attempt& a = *live(id);
    // A worker that has seen our epoch refuses whatever an earlier life of ours sent.
    const bool told = sync.epoch_seen == epoch_;
    const BootId life_of = a.worker && a.sent_to ? *a.sent_to : a.granted_boot;
    if (!a.has_begun() && life_of != sync.boot && wire::has_books_of(sync, life_of)) {
      void_attempt(a, "worker " + sync.worker.raw() + " was killed before it began");
      never_began = true;
    } else if (!a.worker) {
      if (sync.boot != a.granted_boot)
        lose(a, Loss::kDied, "worker " + sync.worker.raw() + " was restarted");
      else if (a.has_begun())
        lose(a, Loss::kGone, "worker " + sync.worker.raw() + " no longer has it");
      else if (told)
        void_attempt(a, "it never reached worker " + sync.worker.raw());
    } else if (life == Life::kNew || (a.begun_in && *a.begun_in != sync.boot)) {
      lose(a, Loss::kDied, "worker " + sync.worker.raw() + " was restarted");
    } else if (a.state == State::kRunning) {
      lose(a, Loss::kGone, "worker " + sync.worker.raw() + " no longer has it");
    } else if (told && a.since + settings_.reassign_after <= now_.mono) {
      // Our Assign was lost, or its mention was.  Even while stopping: it may have begun to spend.
      a.since = now_.mono;
      a.sent_to = roster_.at(w).boot;
      assigns_[w].push_back({a.id, a.ask});
      a.cancel_sent = false;  // who is to stop is told again, once it says that it runs
    }
  }
  if (never_began) count_host_failure(w);  // as in take_back()
}

void Scheduler::reconcile_unacked(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply) {
  for (const AttemptId& id : sync.unacked) {
    if (plan_.runs.size() <= id.run.raw()) {
      reply.acked.push_back(id);  // not of this campaign: it cannot be wanted
      continue;
    }
    if (is_unheard_of(id)) {  // it keeps what it has: a journal that is put right may want it
      tell_unheard_of(w, id);
      continue;
    }
    if (late_writing_.contains(id)) continue;  // its acknowledgement follows the commit
    Attempt* a = live(id);
    if (is_anothers(id, w)) {
      doubt_sender(w, id);
      continue;
    }
    if (a == nullptr) {
      (is_late_of(w, id) ? reply.resend : reply.acked).push_back(id);
      continue;
    }
    switch (a->state) {
      case State::kIntent:
      case State::kReserving:
        break;  // it cannot have a result yet; the next Sync will tell more
      case State::kGranting:
      case State::kAssigned:
      case State::kRunning:
        if (a->owner != w) {
          doubt_sender(w, id);
          break;
        }
        if (!a->worker) seat(*a, w);
        reply.resend.push_back(id);
        break;
      case State::kFinishing:
        break;  // its acknowledgement follows the commit
      case State::kSettling:
      case State::kClosing:
        (is_late_of(w, id) ? reply.resend : reply.acked).push_back(id);
        break;
    }
  }
}

// Of a run of ours, and of an attempt that was never asked for: the worker is wrong, or this
// journal is older than the campaign.
bool Scheduler::is_unheard_of(const AttemptId& id) const {
  return id.run.raw() < plan_.runs.size() && attempts_made_[id.run.raw()] < id.no.raw();
}

// A worker's word, so it is told and changes nothing.
void Scheduler::tell_unheard_of(WorkerIndex w, const AttemptId& id) {
  if (!unheard_of_.insert(w).second) return;
  out_.push_back(Alert{"worker " + roster_.at(w).id.raw() + " has attempt " + to_string(id) +
                       ", which this journal never granted. If the journal was put back to an "
                       "older state: stop, then proctor journal recover --behind"});
}

void Scheduler::handle(const ProgressReceived& e) {
  const WorkerIndex w = roster_.index_of(e.worker);
  for (const wire::RunningAttempt& r : e.progress.running) {
    Attempt* a = live(r.attempt);
    if (a != nullptr && a->owner == w) a->at_work = a->at_work || tells_of_work(r);
    if (a == nullptr || !assigned_to(*a, w)) {
      // Of one that has just ended it may be late; of one that another worker has it is wrong.
      if (a != nullptr ? a->worker && *a->worker != w : plan_.runs.size() <= r.attempt.run.raw())
        doubt_sender(w, r.attempt);
      continue;
    }
    a->state = State::kRunning;
    a->since = now_.mono;
    // It may be late, from a life before the one we know: a Sync says which, a Progress does not.
    if (r.sandbox_started && !a->begun_in) a->begun_in = a->sent_to;
    watch_run(*a, r);
  }
}

void Scheduler::handle(const WorkerLeft& e) {
  const WorkerIndex w = roster_.index_of(e.worker);
  if (!roster_.at(w).present || roster_.at(w).boot != e.boot) return;  // an older life's goodbye
  const std::string left = "worker " + e.worker.raw() + " left";
  // What it never began costs nothing, though its Assign was lost or came too late.
  if (e.spooled)
    for (const AttemptId& id : attempts_at(w))
      if (Attempt& a = *live(id); assigned_to(a, w) && !a.has_begun() && !e.spooled->contains(id))
        void_attempt(a, left + " before it began");
  worker_gone(w, Loss::kGone, left);
}

std::size_t Scheduler::worker_gone(WorkerIndex w, Loss why, const std::string& text) {
  roster_.leave(w, now_.mono);
  note("worker_left", std::nullopt, text);
  const std::vector<AttemptId> theirs = attempts_at(w);
  for (const AttemptId& id : theirs)
    if (Attempt& a = *live(id); assigned_to(a, w)) lose(a, why, text);
  return theirs.size();
}

// It gets nothing new until it is heard of.  What it runs may go on there: that waits for the
// lease.
void Scheduler::suspect(WorkerIndex w, const std::string& why) {
  roster_.set_suspect(w, true);
  note("worker_suspect", std::nullopt, roster_.at(w).id.raw());
  out_.push_back(
      Alert{"worker " + roster_.at(w).id.raw() + " " + why + "; its runs keep their money"});
}

void Scheduler::handle(const WorkerDisconnected& e) {
  const WorkerIndex w = roster_.index_of(e.worker);
  const WorkerState& s = roster_.at(w);
  if (!s.present || s.suspect || s.boot != e.boot) return;
  suspect(w, "is no longer connected");
}

// Silence may be the network's: before it convicts a run it must last twice as long.
Millis Scheduler::lease_of(WorkerIndex w) const {
  const bool alone = roster_.at(w).kept && std::ranges::any_of(attempts_at(w), [&](auto& id) {
                       const Attempt& a = live_.at(id.run);
                       return a.alone && assigned_to(a, w);
                     });
  return alone ? settings_.lease * 2 : settings_.lease;
}

void Scheduler::handle(const TimerFired&) {
  std::size_t lost = 0, present = 0;
  for (WorkerIndex w = 0; w < roster_.size(); ++w) present += roster_.at(w).present ? 1 : 0;
  const Millis suspect_after = suspect_after_of(present, settings_.suspect_after);
  for (WorkerIndex w = 0; w < roster_.size() && lost < kLossesPerStep; ++w) {
    const WorkerState& worker = roster_.at(w);
    if (!worker.present) continue;
    if (worker.last_sync + lease_of(w) <= now_.mono) {
      lost += worker_gone(w, Loss::kSilent,
                          "worker " + worker.id.raw() + " was silent for the whole lease");
      // A word of a life that is over comes late, but not as late as that.
      roster_.edit(w, [](WorkerState& s) { s.past.clear(); });
    } else if (!worker.suspect && worker.last_sync + suspect_after <= now_.mono) {
      suspect(w, "has not been heard of");
    }
  }
  // The others' turn comes when the loop has heard who else waits.
  out_.push_back(ArmTimer{lost < kLossesPerStep ? now_.mono + settings_.tick : now_.mono});
  // Attempts of an earlier life of ours that no worker has claimed.
  std::erase_if(unclaimed_, [this](RunId run) {
    const auto it = live_.find(run);
    if (it == live_.end() || it->second.worker || it->second.state != State::kAssigned) return true;
    if (now_.mono < it->second.since + settings_.lease) return false;
    lose(it->second, Loss::kUnclaimed, "no worker claimed it after the restart");
    return true;
  });
  end_quarantines();
  look_at_faults();
  forget_absent();
}

void Scheduler::handle(const DrainAsked&) {
  if (mode_ == Mode::kRun) mode_ = Mode::kDrain;
}

void Scheduler::handle(const CancelAsked&) {
  mode_ = Mode::kCancel;
  cancel_running(true);
}

// Whoever has it hears of no cancel, and a life that ends now loses nothing by it: the next one has
// the attempt from the journal, and waits for its worker as this one did.
bool Scheduler::is_out_of_reach(const Attempt& a) const {
  if (a.state != State::kAssigned && a.state != State::kRunning) return false;
  if (!a.worker) return a.since + settings_.suspect_after <= now_.mono;
  const WorkerState& w = roster_.at(*a.worker);
  return w.suspect || !w.present;
}

void Scheduler::cancel_running(bool all) {
  for (auto& [run, a] : live_) {
    if (!a.worker || a.cancel_sent) continue;
    if (!all && phases_[run.raw()] != RunPhase::kCancelled) continue;
    if (a.state != State::kAssigned && a.state != State::kRunning) continue;
    a.cancel_sent = true;
    cancels_[*a.worker].push_back(a.id);
  }
}

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
      safety_(settings_.stop_after, settings_.critical),
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

// The writes, commands and answers that a step gathered.

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
    if (awaiting_.empty())
      out_.emplace_back(std::move(answer));
    else
      awaiting_.back().answers.push_back(std::move(answer));
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
  Attempt* const a = live(after.attempt);
  const auto is_in = [&](State state) { return a != nullptr && a->state == state; };
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
      if (is_in(State::kClosing) && a->seq == after.seq) close(after.attempt);
      return;
    case Step::kAsk:
      PROCTOR_ASSERT(is_in(State::kIntent));
      a->state = State::kReserving;
      reserve_.ops.push_back({{a->id, a->seq}, a->ask, plan_.path(a->id.run)});
      return;
    case Step::kAssign:
      PROCTOR_ASSERT(a != nullptr);
      if (a->state == State::kGranting) assign_or_void(*a);
      return;  // its result may have overtaken it: then there is nothing to send
    case Step::kAckAndSettle:
    case Step::kSettleLost:
      PROCTOR_ASSERT(is_in(State::kFinishing));
      if (after.step == Step::kAckAndSettle)
        for (const WorkerIndex w : std::exchange(a->ack_to, {})) acks_[w].push_back(a->id);
      a->state = State::kSettling;
      settle_.ops.push_back({{a->id, a->seq}, a->cost.total()});
      return;
  }
}

// The choice of the runs that begin.

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

// Small parts.

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
  Note out{now_.wall, std::move(kind), {}, {}, text};
  if (attempt) {
    out.run = attempt->run;
    out.attempt = attempt->no;
  }
  write(std::move(out));
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
