// The simulated workers and the network between them and the coordinator.
#include "common/wire/messages.h"
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

void World::to_worker(const WorkerId& id, std::function<void(SimWorker&)> what) {
  const int copies = chance(ranges_.lose) ? 0 : chance(ranges_.repeat) ? 2 : 1;
  if (copies == 0) ++seen_.lost;
  if (copies == 2) ++seen_.repeated;
  for (int i = 0; i < copies; ++i)
    at(chance(3) ? some(8'000) : some(20), [this, id, what] {
      SimWorker& w = workers_.at(id);
      if (w.alive && w.cut_off_until <= now_) what(w);
    });
}

void World::to_coordinator(SimWorker& w, Event e) {
  if (now_ < w.cut_off_until) return;
  const int copies = chance(ranges_.lose) ? 0 : chance(ranges_.repeat) ? 2 : 1;
  if (copies == 0) ++seen_.lost;
  if (copies == 2) ++seen_.repeated;
  for (int i = 0; i < copies; ++i) at(chance(3) ? some(8'000) : some(20), [this, e] { feed(e); });
}

void World::sync(SimWorker& w) {
  const std::uint32_t life = w.life;
  at(Millis(2'000), [this, &w, life] {
    if (w.alive && w.life == life) sync(w);
  });
  wire::Sync s;
  s.worker = w.id;
  s.boot = w.boot;
  s.epoch_seen = w.epoch_seen;
  s.slots = w.leaving ? 0 : w.slots;
  s.ticket = ++w.ticket;
  for (auto& [id, said] : w.declined) {
    s.declined.push_back(id);
    if (said == 0) said = w.ticket;
  }
  if (w.leaving && w.leave_said == 0) w.leave_said = w.ticket;
  s.features = {"sandbox:null"};
  for (const BootId earlier : w.lives) s.features.push_back(wire::books_feature(earlier));
  for (const auto& [id, usage] : w.running)
    s.running.push_back({id, wire::Stage::kAgent, true, usage});
  for (const auto& [id, result] : w.spool) s.unacked.push_back(id);
  to_coordinator(w, WorkerSynced{std::move(s)});
}

void World::perform(const ReplySync& c) {
  seen_.cancelled_on_sync += c.reply.cancel.size();
  seen_.resent += c.reply.resend.size();
  seen_.stop_orders += c.reply.stop.size();
  to_worker(c.worker, [this, reply = c.reply, epoch = epoch_](SimWorker& w) {
    if (epoch < w.epoch_seen) return;
    w.epoch_seen = epoch;
    if (reply.suspended) ++seen_.suspended;
    for (const AttemptId& id : reply.acked) w.spool.erase(id);
    for (const AttemptId& id : reply.resend)
      if (const auto it = w.spool.find(id); it != w.spool.end()) send_result(w, it->second);
    for (const AttemptId& id : reply.cancel) w.running.erase(id);
    for (const AttemptId& id : reply.stop) stop_agent(w, id);
    if (w.ticket < reply.ticket) return;  // of an earlier life
    std::erase_if(w.declined,
                  [&](const auto& one) { return one.second != 0 && one.second <= reply.ticket; });
    const bool heard = w.leave_said != 0 && w.leave_said <= reply.ticket;
    const bool may = reply.drain || (w.leaving && heard && w.declined.empty());
    if (may && w.running.empty() && w.spool.empty()) leave(w);
  });
}

void World::perform(const AssignRuns& c) {
  for (const AssignRuns::Run& r : c.runs) {
    check_assigned(c.worker, r.attempt);
    const auto it = durable_.find(r.attempt);
    if (it == durable_.end() || it->second.at.state != AttemptState::kGranted)
      fail("assigned before its grant was durable: " + to_string(r.attempt));
    for (auto e = durable_.lower_bound({r.attempt.run, AttemptNo(0)});
         e != durable_.end() && e->first < r.attempt; ++e)
      if (!e->second.terminal) fail("two live attempts of one run: " + to_string(r.attempt));
    if (const auto begun = begun_in_.find(r.attempt); begun != begun_in_.end()) {
      const auto heard = boot_heard_.find(c.worker);
      if (heard == boot_heard_.end() || heard->second != begun->second)
        fail("assigned again though another life began it: " + to_string(r.attempt));
    }
    if (outcome_of_.contains(r.attempt.run))
      fail("assigned after its run ended: " + to_string(r.attempt));
  }
  // On the connection of the life that was heard of: the next one never sees it.
  to_worker(c.worker,
            [this, runs = c.runs, epoch = epoch_, to = boot_heard_[c.worker]](SimWorker& w) {
              if (w.boot != to) return;
              for (const AssignRuns::Run& r : runs) start_attempt(w, epoch, r.attempt);
            });
}

void World::start_attempt(SimWorker& w, Epoch epoch, AttemptId id) {
  if (epoch < w.epoch_seen) return;  // fenced
  w.epoch_seen = epoch;
  if (w.running.contains(id) || w.spool.contains(id) || w.done.contains(id)) {
    ++seen_.reassigned;
    return;
  }
  if (w.leaving) {
    if (w.declined.emplace(id, 0).second) ++seen_.declined;
    w.leave_said = 0;
    return;
  }
  Usage u;
  u.tool_calls = below(static_cast<std::uint64_t>(plan_.task_of(id.run).ask.micros()) + 1);
  w.running.emplace(id, u);
  work_on(w, id);
  if (below(2) == 0)
    to_coordinator(w, ProgressReceived{w.id, {epoch, {{id, wire::Stage::kPreparing, false, u}}}});
}

void World::work_on(SimWorker& w, AttemptId id) {
  begun_in_[id] = w.boot;
  const std::uint32_t life = w.life;
  const bool kills = poison_ == id.run;
  at(kills ? Millis(2'500) + some(5'000) : some(15'000), [this, &w, life, id, kills] {
    if (!w.alive || w.life != life || !w.running.contains(id)) return;
    if (!kills) return finish_attempt(w, id);
    ++seen_.poison_kills;
    killed_by_.insert(id);
    kill_worker(w);
  });
}

void World::finish_attempt(SimWorker& w, AttemptId id) {
  if (!w.running.contains(id)) return;  // cancelled meanwhile
  wire::ResultMessage r;
  if (fails_before_work(w, id, r)) return end_attempt(w, id, r);
  r.outcome = below(2) == 0 ? RunOutcome::kSuccess : RunOutcome::kFailure;
  const bool sick = w.id == sick_ && chance(70);
  const bool overload = chance(ranges_.overload);
  if (sick || overload || chance(ranges_.infrastructure)) {
    ++(overload ? seen_.overloads : seen_.infrastructure);
    r.infrastructure = true;
    r.overload = overload;
    r.outcome = RunOutcome::kInvalid;
    r.termination = overload ? Termination::kModelOverloaded : Termination::kInfrastructure;
  } else if (chance(ranges_.misfits)) {
    ++seen_.misfits;
    r.outcome = RunOutcome::kInvalid;
    r.termination = Termination::kInfrastructure;
  }
  end_attempt(w, id, r);
}

// Spooled first, then sent, as often as it is asked for.
void World::end_attempt(SimWorker& w, AttemptId id, wire::ResultMessage r) {
  const auto it = w.running.find(id);
  r.epoch = w.epoch_seen;
  r.attempt = id;
  r.usage = it->second;
  if (!r.infrastructure) r.archive_bytes = 1;
  w.running.erase(it);
  w.done.insert(id);
  w.spool[id] = r;
  send_result(w, r);
}

// The agent goes, what it left is judged: a result like any other, by its own cap.
void World::stop_agent(SimWorker& w, AttemptId id) {
  if (!w.running.contains(id)) return;
  ++seen_.stopped;
  wire::ResultMessage r;
  if (fails_before_work(w, id, r)) return end_attempt(w, id, r);  // it has no agent to stop
  r.outcome = below(2) == 0 ? RunOutcome::kSuccess : RunOutcome::kFailure;
  r.termination = Termination::kBudgetExceeded;
  end_attempt(w, id, r);
}

void World::send_result(SimWorker& w, const wire::ResultMessage& r) {
  to_coordinator(w, ResultReceived{w.id, r});
}

void World::perform(const AckResults& c) {
  for (const AttemptId& id : c.attempts) {
    const auto it = durable_.find(id);
    if (it == durable_.end() || !it->second.at.has_result)
      fail("acknowledged before it was durable: " + to_string(id));
  }
  to_worker(c.worker, [ids = c.attempts](SimWorker& w) {
    for (const AttemptId& id : ids) w.spool.erase(id);
  });
}

void World::perform(const CancelAttempts& c) {
  to_worker(c.worker, [this, ids = c.attempts](SimWorker& w) {
    for (const AttemptId& id : ids) {
      if (!w.running.contains(id)) continue;
      wire::ResultMessage r;
      r.termination = Termination::kOperatorCancel;
      end_attempt(w, id, r);
    }
  });
}

// It was told to; somebody starts it again.
void World::leave(SimWorker& w) {
  to_coordinator(w, WorkerLeft{w.id, w.boot, std::set<AttemptId>()});
  w.alive = false;
  ++w.life;
  w.done.clear();
  stay(w);
  at(some(20'000), [this, &w] {
    w.alive = true;
    w.boot = BootId(rng_());
    w.epoch_seen = Epoch(0);
    sync(w);
  });
}

void World::stay(SimWorker& w) {
  w.leaving = false;
  w.declined.clear();
  w.leave_said = 0;
  w.ticket = 0;
}

void World::kill_worker(SimWorker& w) {
  w.alive = false;
  ++w.life;
  stay(w);
  w.lives.push_back(w.boot);
  if (!ranges_.books) w.lives.clear();
  if (!w.spool.empty() && chance(ranges_.torn)) {
    ++seen_.torn;
    w.lives.clear();
    w.spool.erase(std::next(w.spool.begin(), static_cast<std::ptrdiff_t>(below(w.spool.size()))));
  }
  // Once: an attempt that outlived a worker may be what kills them (worker/shell/checkpoint.h).
  std::erase_if(w.running, [&](const auto& one) {
    if (!chance(ranges_.outlives) || !outlived_.insert(one.first).second) return false;
    w.left.insert(one);
    return true;
  });
  if (ranges_.books) {
    for (const auto& [id, usage] : w.running) {
      wire::ResultMessage& r = w.spool[id];  // found by its next life
      r.epoch = w.epoch_seen;
      r.attempt = id;
      r.archive_bytes = 0;
      r.termination = Termination::kInfrastructure;
      r.infrastructure = true;
      r.usage = usage;
      ++seen_.reported_dead;
    }
  }
  w.running.clear();
  w.done.clear();
  if (!poison_ && w.id != workers_.begin()->first && chance(ranges_.gone_for_good)) {
    ++seen_.gone_for_good;  // and its spool with it
    w.spool.clear();
    w.left.clear();
    return;
  }
  at(some(40'000), [this, &w] {  // the spool was on disk
    w.alive = true;
    w.boot = BootId(rng_());
    w.epoch_seen = Epoch(0);
    w.running.swap(w.left);
    for (const auto& [id, usage] : w.running) {
      if (0 < killed_by_.erase(id)) killed_before_.insert(id);
      work_on(w, id);
    }
    sync(w);
  });
}

}  // namespace proctor::sim
