// The scheduler's half that deals with workers: what they state, and what their silence means.
#include <algorithm>
#include <utility>

#include "common/base/result.h"
#include "common/wire/messages.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/core/sync_pace.h"

namespace proctor {
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
  if (joined || reborn)
    note(reborn ? "worker_restarted" : "worker_joined", std::nullopt,
         e.sync.worker.raw() + " with " + std::to_string(slots) + " slots");
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
  reply.demand = demand_of(w);
  return reply;
}

// What a worker that serves other campaigns too may give this one: it counts what could begin, not
// what will, for money and rates may say no.  Who lets slots lie is given fewer by the worker.
std::uint32_t Scheduler::demand_of(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  if (mode_ != Mode::kRun || paused_ || !s.takes_new()) return 0;
  return static_cast<std::uint32_t>(std::min(queue_.wanting(s.has), limits::kSlotsMax));
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
  return has_lone_attempt(w) ? settings_.lease * 2 : settings_.lease;
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
  cancel_running();
}

// Whoever has it hears of no cancel, and a life that ends now loses nothing by it: the next one has
// the attempt from the journal, and waits for its worker as this one did.
bool Scheduler::is_out_of_reach(const Attempt& a) const {
  if (a.state != State::kAssigned && a.state != State::kRunning) return false;
  if (!a.worker) return a.since + settings_.suspect_after <= now_.mono;
  const WorkerState& w = roster_.at(*a.worker);
  return w.suspect || !w.present;
}

void Scheduler::cancel_unwanted() {
  for (auto& [run, a] : live_) {
    if (!a.worker || a.cancel_sent || phases_[run.raw()] != RunPhase::kCancelled) continue;
    if (a.state != State::kAssigned && a.state != State::kRunning) continue;
    a.cancel_sent = true;
    cancels_[*a.worker].push_back(a.id);
  }
}

void Scheduler::cancel_running() {
  for (auto& [run, a] : live_) {
    if (!a.worker || a.cancel_sent) continue;
    if (a.state != State::kAssigned && a.state != State::kRunning) continue;
    a.cancel_sent = true;
    cancels_[*a.worker].push_back(a.id);
  }
}

}  // namespace proctor
