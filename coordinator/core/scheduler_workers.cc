// The scheduler's half that deals with workers: what they state, and what their silence means.
#include <algorithm>
#include <utility>

#include "common/base/assert.h"
#include "coordinator/core/scheduler.h"

namespace proctor {

void Scheduler::handle(const WorkerSynced& e) {
  const WorkerIndex w = roster_.index_of(e.sync.worker);
  const WorkerState before = roster_.at(w);
  const bool reborn = before.present && before.boot != e.sync.boot;
  const bool joined = !before.present;
  roster_.update(w, e.sync.boot, e.sync.slots, capability::from_features(e.sync.features),
                 now_.mono);
  if (joined || reborn)
    note(reborn ? "worker_restarted" : "worker_joined", std::nullopt,
         e.sync.worker.raw() + " with " + std::to_string(e.sync.slots) + " slots");
  if (before.suspect) note("worker_back", std::nullopt, e.sync.worker.raw());
  wire::SyncReply reply;
  reply.drain = mode_ != Mode::kRun;
  reconcile(w, reborn ? Life::kNew : Life::kSame, e.sync, reply);
  reconcile_unacked(w, e.sync, reply);
  share_rates(w, e.sync, reply);
  out_.push_back(ReplySync{e.sync.worker, std::move(reply)});
  if (0 < roster_.at(w).free()) queue_.wake_workers(roster_.at(w).has);
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
    if (a != nullptr && a->worker && *a->worker != w) doubt_sender(w, r.attempt);
    if (!wanted || (a->worker && *a->worker != w)) {
      reply.cancel.push_back(r.attempt);  // another attempt has its place, or nobody asked for it
      continue;
    }
    if (!a->worker) {  // adopted after a restart of ours
      a->worker = w;
      roster_.hold(w);
      note("adopted", a->id, sync.worker.raw());
    }
    if (a->state == State::kGranting) {  // our grant was on its way to disk: the worker is faster
      known.insert(r.attempt);
      continue;
    }
    a->state = State::kRunning;
    a->since = now_.mono;
    known.insert(r.attempt);
    watch_run(*a, r);
    // Until it obeys; an order that is lost is in the next answer too.
    if (a->dominates && r.stage <= wire::Stage::kAgent &&
        settings_.watch.dominance.action == BudgetWatch::Dominance::Action::kStop)
      reply.stop.push_back(r.attempt);
    if (mode_ == Mode::kCancel) reply.cancel.push_back(r.attempt);  // until it obeys
  }
  for (const AttemptId& id : sync.unacked) known.insert(id);
  reconcile_missing(w, life, sync, known);
}

// Attempts that should be at this worker and that it does not mention.
void Scheduler::reconcile_missing(WorkerIndex w, Life life, const wire::Sync& sync,
                                  const std::set<AttemptId>& known) {
  std::vector<AttemptId> missing;  // gathered first: losing an attempt changes its state
  for (const auto& [run, a] : live_) {
    if (known.contains(a.id)) continue;
    const bool unclaimed = a.state == State::kAssigned && !a.worker && a.granted_to == w;
    if (assigned_to(a, w) || unclaimed) missing.push_back(a.id);
  }
  for (const AttemptId& id : missing) {
    Attempt& a = *live(id);
    // A worker that has seen our epoch refuses whatever an earlier life of ours sent.
    const bool told = sync.epoch_seen == epoch_;
    if (!a.worker) {
      if (sync.boot != a.granted_boot)
        lose(a, "worker " + sync.worker.raw() + " was restarted");
      else if (told)
        void_attempt(a, "it never reached worker " + sync.worker.raw());
    } else if (life == Life::kNew) {
      lose(a, "worker " + sync.worker.raw() + " was restarted");
    } else if (a.state == State::kRunning) {
      lose(a, "worker " + sync.worker.raw() + " no longer has it");
    } else if (told && a.since + settings_.reassign_after <= now_.mono) {
      // Our Assign was lost, or its mention was.  Even while stopping: it may have begun to spend.
      a.since = now_.mono;
      assigns_[w].push_back({a.id, a.ask});
      if (mode_ == Mode::kCancel) a.cancel_sent = false;
    }
  }
}

void Scheduler::reconcile_unacked(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply) {
  for (const AttemptId& id : sync.unacked) {
    if (plan_.runs.size() <= id.run.raw() || attempts_made_[id.run.raw()] < id.no.raw()) {
      reply.acked.push_back(id);  // not of this campaign: it cannot be wanted
      continue;
    }
    if (late_writing_.contains(id)) continue;  // its acknowledgement follows the commit
    Attempt* a = live(id);
    if (a == nullptr) {
      (lost_.contains(id) ? reply.resend : reply.acked).push_back(id);
      continue;
    }
    switch (a->state) {
      case State::kIntent:
      case State::kReserving:
        break;  // it cannot have a result yet; the next Sync will tell more
      case State::kGranting:
      case State::kAssigned:
      case State::kRunning:
        if (!a->worker) {
          a->worker = w;
          roster_.hold(w);
        }
        reply.resend.push_back(id);
        break;
      case State::kFinishing:
        break;  // its acknowledgement follows the commit
      case State::kSettling:
      case State::kClosing:
        (lost_.contains(id) ? reply.resend : reply.acked).push_back(id);
        break;
    }
  }
}

void Scheduler::handle(const ProgressReceived& e) {
  const WorkerIndex w = roster_.index_of(e.worker);
  for (const wire::RunningAttempt& r : e.progress.running) {
    Attempt* a = live(r.attempt);
    if (a == nullptr || !assigned_to(*a, w)) {
      // Of one that has just ended it may be late; of one that another worker has it is wrong.
      if (a != nullptr ? a->worker && *a->worker != w : plan_.runs.size() <= r.attempt.run.raw())
        doubt_sender(w, r.attempt);
      continue;
    }
    a->state = State::kRunning;
    a->since = now_.mono;
    watch_run(*a, r);
  }
}

void Scheduler::handle(const WorkerLeft& e) {
  const WorkerIndex w = roster_.index_of(e.worker);
  if (!roster_.at(w).present || roster_.at(w).boot != e.boot) return;  // an older life's goodbye
  worker_gone(w, "worker " + e.worker.raw() + " left");
}

void Scheduler::worker_gone(WorkerIndex w, const std::string& why) {
  roster_.leave(w);
  note("worker_left", std::nullopt, why);
  std::vector<AttemptId> theirs;
  for (const auto& [run, a] : live_)
    if (assigned_to(a, w)) theirs.push_back(a.id);
  for (const AttemptId& id : theirs) lose(*live(id), why);
}

void Scheduler::handle(const TimerFired&) {
  out_.push_back(ArmTimer{now_.mono + settings_.tick});
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& worker = roster_.at(w);
    if (!worker.present) continue;
    if (worker.last_sync + settings_.lease <= now_.mono) {
      worker_gone(w, "worker " + worker.id.raw() + " was silent for the whole lease");
    } else if (!worker.suspect && worker.last_sync + settings_.suspect_after <= now_.mono) {
      roster_.set_suspect(w, true);
      note("worker_suspect", std::nullopt, worker.id.raw());
      out_.push_back(
          Alert{"worker " + worker.id.raw() + " has not been heard of; its runs keep their money"});
    }
  }
  // Attempts of an earlier life of ours that no worker has claimed.
  std::vector<AttemptId> unclaimed;
  for (const auto& [run, a] : live_)
    if (!a.worker && a.state == State::kAssigned && a.since + settings_.lease <= now_.mono)
      unclaimed.push_back(a.id);
  for (const AttemptId& id : unclaimed) lose(*live(id), "no worker claimed it after the restart");
}

void Scheduler::lose(Attempt& a, const std::string& reason) {
  // What it spent since it was last heard of is unknown: charged at its ceiling, never at zero.
  a.cost = Cost{.model = {}, .execution = a.ask, .human = {}, .overhead = {}};
  lost_.insert(a.id);
  write(AttemptLost{a.id, reason, now_.wall}, After{Step::kSettleLost, a.id, a.seq, 0});
  release_slot(a);
  a.state = State::kFinishing;
  a.sets_outcome = false;
  again_or_end(a.id.run);
}

// After a failure that is not the agent's: another attempt if the limit allows, else the run ends
// invalid.
void Scheduler::again_or_end(RunId run) {
  Attempt& a = live_.at(run);
  if (++failures_[run.raw()] <= settings_.infrastructure_retries)
    return;  // queued when it is closed
  a.sets_outcome = true;
  a.outcome = RunOutcome::kInvalid;
  write(RunEnded{run, a.id, RunOutcome::kInvalid});
  end_run(run, RunOutcome::kInvalid);
}

void Scheduler::handle(const DrainAsked&) {
  if (mode_ == Mode::kRun) mode_ = Mode::kDrain;
}

void Scheduler::handle(const CancelAsked&) {
  mode_ = Mode::kCancel;
  cancel_running();
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
