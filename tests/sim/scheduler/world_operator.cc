// The simulated operator, and the oracles of what people decide and who is to blame.
#include <algorithm>

#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

void World::act(OperatorAct a) {
  if (a.by.empty()) a.by = "sim";
  a.reason = "a test";
  a.at = WallTime(static_cast<std::int64_t>(++ticket_));
  asked_[ticket_] = a.kind;
  // What is undone may be made use of before that is durable.
  if (a.kind == OperatorActKind::kUnpause) standing_.paused = standing_.suspended = false;
  if (a.kind == OperatorActKind::kRelease) standing_.shut.erase(a.worker);
  if (a.kind == OperatorActKind::kRequeue || a.kind == OperatorActKind::kApprove)
    for (const RunId run : a.runs) {
      if (a.invalid && core_->phase(run) != RunPhase::kEnded) continue;
      if (a.invalid) again_at_once_.insert(run);  // its result may be durable only after this
      standing_.cancelled.erase(run);
      touched_.insert(run);
      not_before_.erase(run);
      denied_after_.erase(run);  // asked once more because somebody said so
    }
  if (a.kind == OperatorActKind::kDrain && a.worker.raw().empty()) stopping_ = true;
  if (a.kind == OperatorActKind::kRaise)
    for (std::uint32_t r = 0; r < plan_.runs.size(); ++r)
      if (core_->phase(RunId(r)) == RunPhase::kParked) touched_.insert(RunId(r));
  feed(OperatorAsked{ticket_, std::move(a)});
}

void World::act(OperatorActKind kind, std::vector<RunId> runs, const WorkerId& worker) {
  OperatorAct a;
  a.kind = kind;
  a.runs = std::move(runs);
  a.worker = worker;
  a.now = below(2) == 0;
  act(std::move(a));
}

void World::some_act() {
  using Kind = OperatorActKind;
  const auto whom =
      std::next(workers_.begin(), static_cast<std::ptrdiff_t>(below(workers_.size())));
  std::vector<RunId> runs;
  const std::uint64_t first = below(plan_.runs.size()), count = 1 + below(6);
  for (std::uint64_t r = first; r < std::min(first + count, plan_.runs.size()); ++r)
    runs.emplace_back(static_cast<std::uint32_t>(r));
  switch (below(12)) {
    case 0:
      return act(Kind::kPause, {}, {});
    case 1:
    case 2:
      return act(Kind::kUnpause, {}, {});
    case 3:
      return act(Kind::kCancel, runs, {});
    case 4: {
      if (below(2) == 0) {  // those that ended invalid, and perhaps some that did not
        OperatorAct a;
        a.kind = Kind::kRequeue;
        a.invalid = true;
        a.runs = runs;
        for (const auto& [run, outcome] : outcome_)
          if (outcome == RunOutcome::kInvalid) a.runs.push_back(run);
        return act(std::move(a));
      }
      std::vector<RunId> cancelled(standing_.cancelled.begin(), standing_.cancelled.end());
      return act(Kind::kRequeue, below(2) == 0 ? runs : cancelled, {});
    }
    case 5:
      return act(Kind::kQuarantine, {}, whom->first);
    case 6:
      if (below(2) == 0) return act(Kind::kDrain, {}, whom->first);
      [[fallthrough]];
    case 7:
    case 8:
      return act(Kind::kRelease, {}, whom->first);
    case 9:
      return act(Kind::kKick, {}, whom->first);
    case 10: {
      OperatorAct a;
      a.kind = Kind::kRaise;
      a.scope = ScopeId(static_cast<std::uint32_t>(below(plan_.scopes.size())));
      a.to = plan_.scopes[a.scope.raw()].cap + MicroUsd::from_micros(1'500'000);
      return act(std::move(a));
    }
    default: {
      std::vector<RunId> held;
      for (std::uint32_t r = 0; r < plan_.runs.size(); ++r)
        if (core_->phase(RunId(r)) == RunPhase::kHeld) held.emplace_back(r);
      return act(below(3) == 0 ? Kind::kCancel : Kind::kApprove, held, {});
    }
  }
}

// Whoever was in charge of the night comes back: nothing stays shut, every question is answered.
void World::heal() {
  at(Millis(5'000), [this] { heal(); });
  if (!core_ || ended_) return;
  using Kind = OperatorActKind;
  if (core_->paused()) act(Kind::kUnpause, {}, {});
  for (int i = 0; core_ && !ended_ && i < 5; ++i) approve_next_stage();
  if (core_ && !ended_) act_on_stage();
  if (!core_) return;
  for (const auto& [id, w] : workers_)
    if (core_ && core_->roster().find(id)) act(Kind::kRelease, {}, id);
  std::vector<RunId> held;
  for (std::uint32_t r = 0; core_ && r < plan_.runs.size(); ++r)
    if (core_->phase(RunId(r)) == RunPhase::kHeld) held.emplace_back(r);
  if (core_ && !held.empty())
    act(poison_ || broken_task_ || mute_method_ ? Kind::kCancel : Kind::kApprove, held, {});
}

// ---------------------------------------------------------------- oracles

void World::perform(const Answer& c) {
  if (c.answer.text.empty()) fail("an answer without a word");
  if (c.answer.verdict == OperatorAnswer::Verdict::kUnchanged) ++seen_.unchanged;
  if (c.answer.verdict != OperatorAnswer::Verdict::kDone) return;
  if (!acts_durable_.contains(c.ticket)) fail("answered before it was durable: " + c.answer.text);
}

void World::perform(const RaiseCaps& c) {
  ledger_turn([this, c]() -> Event {
    ++came_back_;
    for (std::uint32_t s = 0; s < c.scopes.size(); ++s) {
      // The next raise may be durable before a slow ledger hears of this one.
      if (plan_.scopes[s].cap < c.scopes[s].cap) fail("a cap the journal does not have");
      ledger_->raise(ScopeId(s), c.scopes[s].cap);
    }
    return TimerFired{};
  });
}

void World::check_act(const Note& note) {
  if (note.kind == RunEscalated::kNote) ++seen_.escalated;
  if (note.kind == kNoteWorkerQuarantined) ++seen_.own_quarantines;
  if (note.kind != OperatorFact::kNote) return;
  const auto fact = fact_of<OperatorFact>(note);
  if (!fact.ok()) return fail(fact.error().detail);
  const OperatorAct& a = fact->act;
  if (a.kind == OperatorActKind::kRequeue || a.kind == OperatorActKind::kApprove)
    forgive_faults(a.runs);
  acts_durable_.insert(static_cast<std::uint64_t>(a.at.raw()));
  for (const AttemptId& id : fact->forgiven) {
    unstarted_.erase(id.run);
    failures_[id.run] = overloads_[id.run] = 0;
    if (poison_ == id.run)
      poison_losses_ =
          std::min(poison_losses_, static_cast<std::uint32_t>(PoisonBook::kSuspectAfter));
    while (PoisonBook::kSuspectAfter < blamed_[id.run].size())
      blamed_[id.run].erase(blamed_[id.run].begin());
  }
  for (Standing* s : {&durable_standing_, &standing_}) switch (a.kind) {
      case OperatorActKind::kPause:
        s->paused = true;
        s->suspended = s->suspended || a.now;
        break;
      case OperatorActKind::kUnpause:
        s->paused = s->suspended = false;
        break;
      case OperatorActKind::kCloseStage:
        s->closed.insert(a.runs.begin(), a.runs.end());
        [[fallthrough]];
      case OperatorActKind::kCancel:
        s->cancelled.insert(a.runs.begin(), a.runs.end());
        break;
      case OperatorActKind::kRequeue:
        for (const RunId run : a.runs) {
          if (s->closed.contains(run)) fail("a run of a closed stage is in line again");
          s->cancelled.erase(run);
        }
        break;
      case OperatorActKind::kDrain:
      case OperatorActKind::kQuarantine:
        if (!a.worker.raw().empty()) s->shut.insert(a.worker);
        break;
      case OperatorActKind::kRelease:
        s->shut.erase(a.worker);
        break;
      case OperatorActKind::kApprove:
      case OperatorActKind::kKick:
      case OperatorActKind::kReview:
      case OperatorActKind::kRaise:
      case OperatorActKind::kApproveStage:
      case OperatorActKind::kWaive:
        break;
    }
  if (a.kind == OperatorActKind::kWaive) ++seen_.waived;
  if (a.kind == OperatorActKind::kCloseStage) ++seen_.stages_closed;
  if (!a.stage.empty()) return;
  std::uint64_t* const counts[] = {
      &seen_.pauses,    &seen_.pauses,      &seen_.worker_drains, &seen_.cancels, &seen_.requeues,
      &seen_.approvals, &seen_.quarantines, &seen_.lost,          &seen_.kicks,   &seen_.raises};
  ++*counts[static_cast<std::size_t>(a.kind)];
}

// Somebody asked for it, it is the result that decided, and that was no verdict.
void World::check_reopened(const AttemptId& id) {
  ++seen_.reopened;
  const RunId run = id.run;
  const auto it = outcome_of_.find(run);
  if (it == outcome_of_.end() || it->second != id)
    return fail("a result was set aside that decided nothing: " + to_string(id));
  if (outcome_.at(run) != RunOutcome::kInvalid) fail("a verdict was set aside: " + to_string(id));
  if (std::ranges::none_of(asked_,
                           [](const auto& a) { return a.second == OperatorActKind::kRequeue; }))
    fail("a result was set aside that nobody asked for: " + to_string(id));
  unstarted_.erase(run);
  outcome_of_.erase(it);
  outcome_.erase(run);
  convicted_.erase(run);
  const RestoredAttempt& a = durable_.at(id).at;
  if (a.has_result && a.state == AttemptState::kFinished && !a.infrastructure) ++failures_[run];
  if (poison_ == run)
    poison_losses_ =
        std::min(poison_losses_, static_cast<std::uint32_t>(PoisonBook::kSuspectAfter));
  while (PoisonBook::kSuspectAfter < blamed_[run].size()) blamed_[run].erase(blamed_[run].begin());
}

void World::check_loss(const Note& note) {
  if (note.kind == kNotePoison) {
    ++seen_.convicted;
    convicted_.insert(*note.run);
    if (poison_ && note.run != poison_)
      fail("an innocent was convicted: run " + std::to_string(note.run->raw()));
    if (!lone_.contains({*note.run, *note.attempt})) fail("convicted though it was not alone");
  }
  if (note.kind == "outlived") {
    ++seen_.outlived;
    const AttemptId id{*note.run, *note.attempt};
    if (!outlived_.contains(id)) fail("taken over though it died: " + to_string(id));
    if (0 < killed_before_.erase(id)) count_poison_loss(id);
  }
  if (note.kind != LossJudged::kNote) return;
  const auto fact = fact_of<LossJudged>(note);
  if (!fact.ok()) return fail(fact.error().detail);
  const AttemptId id = fact->attempt;
  switch (fact->verdict) {
    case LossJudged::Verdict::kBlamed:
      ++seen_.blamed;
      if (!heard_.contains(id)) fail("blamed though it had not begun: " + to_string(id));
      blamed_[id.run].insert(id.no);
      return;
    case LossJudged::Verdict::kWithdrawn:
      ++seen_.withdrawn;
      blamed_[id.run].erase(id.no);
      return;
    case LossJudged::Verdict::kExcused:
      ++seen_.excused;
      excused_.insert(id);
      return;
  }
}

// What is begun now.
void World::check_starts(const AttemptIntent& w) {
  const RunId run = w.attempt.run;
  const std::string what = ": " + to_string(w.attempt);
  if (stopping_) fail("something starts though it is stopping" + what);
  if (standing_.paused) fail("something starts though it is paused" + what);
  if (standing_.cancelled.contains(run)) fail("a cancelled run starts" + what);
  if (standing_.closed.contains(run)) fail("a run of a closed stage starts" + what);
  if (again_at_once_.erase(run) == 1) not_before_.erase(run);  // somebody said so
  if (const auto it = not_before_.find(run); it != not_before_.end() && w.seq == 0) {
    ++seen_.waited;
    if (now_ < it->second.first + it->second.second / 2) fail("tried again too early" + what);
    not_before_.erase(it);
  }
}

void World::check_assigned(const WorkerId& worker, const AttemptId& id) {
  if (assigned_now_.contains(id)) return;  // said again
  if (standing_.paused) fail("assigned though it is paused: " + to_string(id));
  if (standing_.cancelled.contains(id.run)) fail("a cancelled run is assigned: " + to_string(id));
  if (standing_.shut.contains(worker)) fail("a closed worker gets work: " + to_string(id));
  assigned_now_[id] = worker;
  std::size_t there = 0;
  bool lone = false;
  for (const auto& [other, where] : assigned_now_) {
    if (where != worker || durable_.at(other).terminal) continue;
    ++there;
    lone = lone || lone_.contains(other);
  }
  if (lone) ++seen_.alone;
  if (lone && 1 < there) fail("a suspect is not alone: " + to_string(id));
}

}  // namespace proctor::sim
