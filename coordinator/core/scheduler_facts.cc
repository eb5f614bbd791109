#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/score/outcome.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/roster.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
// The scheduler's part that changes its state by facts: those that notes keep (events.h) and those
// that rows keep.  The only code that does: a life of the scheduler applies each fact as it decides
// it, and the next life applies the same facts from the journal, by the same functions
// (docs/decisions/115).  It decides nothing, writes nothing and asks for no effect; what only the
// living do (waits, cancels, answers) is where they decide.

void Scheduler::apply(const WorkerJudged& fact) {
  using Quarantine = WorkerState::Quarantine;
  roster_.edit(roster_.index_of(fact.worker), [&](WorkerState& s) {
    switch (fact.verdict) {
      case WorkerJudged::Verdict::kQuarantined:
        if (s.quarantine == Quarantine::kOperator) return;
        s.quarantine = Quarantine::kFailures;
        s.quarantines = fact.nth == 0 ? s.quarantines + 1 : fact.nth;
        s.reason = fact.reason;
        return;
      case WorkerJudged::Verdict::kReleased:  // one more failure and it is back at once
        if (s.quarantine != Quarantine::kFailures) return;
        s.quarantine = Quarantine::kNone;
        s.failures = settings_.retries.quarantine_after - 1;
        return;
      case WorkerJudged::Verdict::kRecovered:
        s.failures = s.quarantines = 0;
        return;
    }
  });
}

void Scheduler::apply(const LossJudged& fact) {
  switch (fact.verdict) {
    case LossJudged::Verdict::kBlamed:
      return poison_.blame(fact.attempt, fact.worker, fact.boot);
    case LossJudged::Verdict::kWithdrawn:
      static_cast<void>(poison_.withdraw(fact.attempt));
      return;
    case LossJudged::Verdict::kExcused:
      excused_.insert(fact.attempt);
      return;
  }
}

void Scheduler::apply(const FaultFact& fact) {
  faults_.take(fact);
  if (fact.verdict == FaultFact::Verdict::kFailed && fact.exit)
    unstarted_[fact.attempt.run] = fact.attempt.no;
}

void Scheduler::apply(const RunEscalated& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded || phase == RunPhase::kRemoved || phase == RunPhase::kCancelled ||
      phase == RunPhase::kHeld)
    return;
  leave_line(fact.run);
  phase = RunPhase::kHeld;
  ++held_;
}

void Scheduler::apply(const SafetySeen& fact) {
  safety_.take(fact, plan_.runs[fact.attempt.run.raw()].task);
  paused_ = paused_ || !safety_.why().empty();  // also where a life ended before it noted the act
}

void Scheduler::apply(const StageChecked& fact) {
  gates_.take(fact);
}

void Scheduler::apply(const StageOpened& fact) {
  gates_.take(fact);
  queue_.shut_from(gates_.shut_from());
}

void Scheduler::apply(const RunParked& fact) {
  if (parked_rows_[fact.run.raw()]) return;
  parked_rows_[fact.run.raw()] = true;
  ++rows_parked_;
}

void Scheduler::apply(const RunUnparked& fact) {
  if (!parked_rows_[fact.run.raw()]) return;
  parked_rows_[fact.run.raw()] = false;
  --rows_parked_;
}

void Scheduler::apply(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  const auto worker = [&](const std::function<void(WorkerState&)>& edit) {
    if (!act.worker.raw().empty()) roster_.edit(roster_.index_of(act.worker), edit);
  };
  switch (act.kind) {
    case OperatorActKind::kPause:
      paused_ = true;
      suspended_ = suspended_ || act.now;
      return;
    case OperatorActKind::kUnpause:
      paused_ = suspended_ = false;
      safety_.go_on();
      return;
    case OperatorActKind::kDrain:  // of the campaign: it ends with the life that was told
      return worker([](WorkerState& s) { s.drained = true; });
    case OperatorActKind::kCloseStage:
      gates_.closed.insert("stage:" + act.stage);
      [[fallthrough]];
    case OperatorActKind::kCancel:
      for (const RunId run : act.runs) cancel_run(run);
      return;
    case OperatorActKind::kRequeue:
    case OperatorActKind::kApprove:
      for (const AttemptId& id : fact.forgiven) forgive(id);
      for (const AttemptId& id : fact.set_aside) put_aside(id);
      for (const RunId run : act.runs) forgive_fault(run);
      for (const RunId run : act.runs) line_up(run);
      return;
    case OperatorActKind::kQuarantine:
      return worker([&](WorkerState& s) {
        s.quarantine = WorkerState::Quarantine::kOperator;
        s.reason = act.reason.empty() ? "by " + act.by : act.reason + " (" + act.by + ")";
      });
    case OperatorActKind::kRelease:
      return worker([](WorkerState& s) { s.set_free(); });
    case OperatorActKind::kKick:
      return worker([&](WorkerState& s) { s.kicked = fact.boot; });
    case OperatorActKind::kApproveStage:
      return gates_.approve(act.stage, Digest::from_hex(act.digest).value(), act.by);
    case OperatorActKind::kWaive:
      gates_.waived[act.stage].insert(act.criterion);
      return;
    case OperatorActKind::kReview:
    case OperatorActKind::kRaise:
      return;  // these have rows of their own: RunReviewed, ScopeDefined
  }
}

// Facts of attempts and outcomes.

// Of one that is paid for there is nothing else to know: a million of them make no entries.
void Scheduler::count_made(const AttemptId& id) {
  auto& made = attempts_made_[id.run.raw()];
  made = std::max(made, static_cast<std::uint16_t>(id.no.raw()));
  denied_.erase(id.run);
}

void Scheduler::apply(const AttemptIntent& fact) {
  const RunId run = fact.attempt.run;
  count_made(fact.attempt);
  Attempt a;
  a.id = fact.attempt;
  a.seq = fact.seq;
  a.ask = fact.ask;
  a.alone = poison_.is_suspect(run);
  plan_.each_scope(
      run, [&](ScopeId s) { balances_[s.raw()].reserved = balances_[s.raw()].reserved + a.ask; });
  if (phases_[run.raw()] == RunPhase::kQueued) {
    leave_line(run);
    phases_[run.raw()] = RunPhase::kActive;
  }
  PROCTOR_ASSERT(live_.emplace(run, std::move(a)).second);
}

// Whoever had what is paid for is remembered as long as nobody needs its place more.
void Scheduler::apply(const AttemptGranted& fact) {
  Attempt* a = live(fact.attempt);
  const std::optional<WorkerIndex> owner = a != nullptr || roster_.names() < kRosterMax / 2
                                               ? roster_.index_of(fact.worker)
                                               : roster_.find(fact.worker);
  if (owner) remember_owner(fact.attempt.run, *owner);
  if (a == nullptr) return;
  a->owner = owner;
  a->granted_at = fact.at;
}

void Scheduler::apply(const AttemptDenied& fact) {
  denied_[fact.attempt.run] = {fact.attempt, fact.seq};
  const Attempt* a = live(fact.attempt);
  if (a == nullptr) return;
  give_back(*a);
  live_.erase(fact.attempt.run);
}

// What it spent since it was last heard of is unknown: charged at its ceiling, never at zero.
void Scheduler::apply(const AttemptLost& fact) {
  if (Attempt* a = live(fact.attempt))
    a->cost = Cost{.model = {}, .execution = a->ask, .human = {}, .overhead = {}};
  if (!fact.worker.raw().empty()) lost_.emplace(fact.attempt, fact.worker);
  if (!excused_.contains(fact.attempt)) count_failure(fact.attempt, RetryClass::kInfrastructure);
}

void Scheduler::apply(const AttemptResult& fact) {
  if (lost_.erase(fact.attempt) == 1) return;  // late: evidence of its attempt, and nothing else
  if (Attempt* a = live(fact.attempt)) a->cost = price(settings_.cost_model, fact.usage);
  if (fact.termination == Termination::kOperatorCancel) return;
  const RunId run = fact.attempt.run;
  // Whatever it did, its worker lives.  A failure of the host may be the worker's own death.
  if (!fact.infrastructure || fact.overload) poison_.survived(fact.attempt);
  if (fact.termination != Termination::kAgentUnavailable &&
      (fact.overload || fact.termination != Termination::kInfrastructure))
    started_methods_.insert(plan_.runs[run.raw()].method);
  if (fact.infrastructure) {
    if (fact.termination == Termination::kAgentUnavailable) unavailable_[run] = fact.attempt.no;
    count_failure(fact.attempt,
                  fact.overload ? RetryClass::kOverload : RetryClass::kInfrastructure);
  } else if (set_aside_.contains(fact.attempt)) {  // the operator's act was read before it
    count_failure(fact.attempt, RetryClass::kInfrastructure);
  }
  if (!fact.sets_outcome) return;
  apply(RunEnded{run, fact.attempt, fact.outcome});
  if (const auto it = invalid_.find(run); it != invalid_.end())
    it->second.how = fact.overload                                      ? Invalid::kOverloaded
                     : fact.infrastructure                              ? Invalid::kCounted
                     : fact.termination == Termination::kInfrastructure ? Invalid::kUncounted
                                                                        : Invalid::kOfTheAgent;
}

void Scheduler::apply(const RunEnded& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded) return;
  leave_line(fact.run);
  phase = RunPhase::kEnded;
  ++ended_[static_cast<std::size_t>(fact.outcome)];
  if (removed_later_.contains(fact.run)) ++ended_removed_[static_cast<std::size_t>(fact.outcome)];
  if (fact.outcome == RunOutcome::kInvalid)
    invalid_[fact.run] = {fact.attempt.no, Invalid::kCounted};
  poison_.rest(fact.run);
}

// What is under way is seen to its end; all else that has not ended is removed wherever it waits.
void Scheduler::apply(const RunRemoved& fact) {
  RunPhase& phase = phases_[fact.run.raw()];
  if (phase == RunPhase::kEnded || live_.contains(fact.run)) {
    removed_later_.insert(fact.run);
    if (fact.ended) ++ended_removed_[static_cast<std::size_t>(*fact.ended)];
    return;
  }
  if (phase == RunPhase::kCancelled) --cancelled_;
  leave_line(fact.run);
  phase = RunPhase::kRemoved;
  ++removed_;
}

// A result that ended its run decides nothing any more; it is one failed attempt.  To a life that
// is restored the run has not ended: the journal has forgotten that with the same act.
void Scheduler::put_aside(const AttemptId& decided) {
  const RunId run = decided.run;
  set_aside_.insert(decided);
  unstarted_.erase(run);
  if (const auto it = invalid_.find(run); it != invalid_.end() && it->second.by == decided.no) {
    if (it->second.how == Invalid::kUncounted) count_failure(decided, RetryClass::kInfrastructure);
    invalid_.erase(it);
    --ended_[static_cast<std::size_t>(RunOutcome::kInvalid)];
    if (removed_later_.contains(run))
      --ended_removed_[static_cast<std::size_t>(RunOutcome::kInvalid)];
    in_line(run);
  }
  poison_.wake(run);
  poison_.pardon(run);
}

void Scheduler::count_failure(const AttemptId& failed, RetryClass of) {
  const RunId run = failed.run;
  if (const auto it = forgiven_.find(run); it != forgiven_.end() && failed.no <= it->second) return;
  if (of == RetryClass::kOverload) {
    ++overloads_[run];
    return;
  }
  auto& n = failures_[run.raw()];
  if (n < UINT16_MAX) ++n;
}

// Facts of money.

void Scheduler::spend(RunId run, MicroUsd amount) {
  plan_.each_scope(run, [&](ScopeId s) {
    ScopeBalance& b = balances_[s.raw()];
    b.spent = b.spent + amount;
  });
}

void Scheduler::give_back(const Attempt& a) {
  plan_.each_scope(a.id.run, [&](ScopeId s) {
    balances_[s.raw()].reserved = balances_[s.raw()].reserved - a.ask;
  });
}

void Scheduler::apply(const AttemptSettled& fact) {
  spend(fact.attempt.run, fact.charged);
  if (const Attempt* a = live(fact.attempt)) give_back(*a);
}

void Scheduler::apply(const RunReviewed& fact) {
  reviews_ = fact.seq;
  spend(fact.run, fact.charged);
}

void Scheduler::apply(const BudgetRaised& fact) {
  const Status raised = raise_cap(plan_.scopes, fact);
  PROCTOR_ASSERT(raised.ok());
  ScopeBalance& balance = balances_[fact.scope.raw()];
  balance.cap = fact.to;
  alerts_.rearm(fact.scope, balance);
}

void Scheduler::apply(const BudgetAlert& fact) {
  alerts_.take(fact);
}

void Scheduler::apply(const RunDominates& fact) {
  dominant_ids_.insert(fact.attempt);
  dominant_.push_back(fact);
}

// Facts of one run.

// Out of wherever it waits; an attempt of it that is out is not touched.
void Scheduler::leave_line(RunId run) {
  switch (phases_[run.raw()]) {
    case RunPhase::kQueued:
      return queue_.remove(run);
    case RunPhase::kParked:
      --parked_;
      shut_.erase(run);
      return;
    case RunPhase::kHeld:
      --held_;
      return;
    case RunPhase::kBackoff:
      due_.erase({backoff_.at(run).until, run});
      backoff_.erase(run);
      return;
    case RunPhase::kActive:
    case RunPhase::kEnded:
    case RunPhase::kRemoved:
    case RunPhase::kCancelled:
      return;
  }
}

void Scheduler::cancel_run(RunId run) {
  RunPhase& phase = phases_[run.raw()];
  if (phase == RunPhase::kEnded || phase == RunPhase::kRemoved || phase == RunPhase::kCancelled)
    return;
  leave_line(run);
  phase = RunPhase::kCancelled;
  ++cancelled_;
}

// Whatever it was kept for, it is to be done now.
void Scheduler::line_up(RunId run) {
  switch (phases_[run.raw()]) {
    case RunPhase::kCancelled:
      --cancelled_;
      return in_line(run);
    case RunPhase::kParked:
    case RunPhase::kHeld:
    case RunPhase::kBackoff:
      leave_line(run);
      return in_line(run);
    case RunPhase::kQueued:
    case RunPhase::kActive:
    case RunPhase::kEnded:
    case RunPhase::kRemoved:
      return;
  }
}

// Failures up to this attempt count no longer; a suspect stays one.
void Scheduler::forgive(const AttemptId& last) {
  forgiven_[last.run] = last.no;
  unstarted_.erase(last.run);
  failures_[last.run.raw()] = 0;
  overloads_.erase(last.run);
  poison_.pardon(last.run);
}

// An operator wants the run tried: whatever its task or method is parked for is forgiven.
void Scheduler::forgive_fault(RunId run) {
  for (const FaultSubject& subject : {task_subject(run), method_subject(run)}) {
    if (!faults_.is_parked(subject)) continue;
    faults_.forgive(subject);
    release_shut(subject);
  }
}

// The scheduler's state as far as facts make it (docs/decisions/078): what a life that is restored
// from the journal must hold as well.  For the simulation's oracle and for people; decides nothing.

std::string Scheduler::durable_run(RunId run) const {
  const auto it = live_.find(run);
  // One that is closing is over and paid for: its run is about to be queued, or parked.
  const bool out = it != live_.end() && it->second.state != State::kClosing;
  const RunPhase phase = phases_[run.raw()];
  // Where it waits, and for how long, each life finds out anew.
  const bool open = phase == RunPhase::kQueued || phase == RunPhase::kActive ||
                    phase == RunPhase::kParked || phase == RunPhase::kBackoff;
  std::string where(open ? "open" : word_of(phase));
  if (open && !out && is_shut(run)) where = "faulty";
  std::string text = fmt::format("{}, {} attempts, {} failures", where, attempts_made_[run.raw()],
                                 failures_[run.raw()]);
  if (const auto n = overloads_.find(run); n != overloads_.end())
    text += fmt::format(", {} overloads", n->second);
  if (const auto how = invalid_.find(run); how != invalid_.end())
    text += fmt::format(", invalid {}", static_cast<int>(how->second.how));
  if (const auto asked = denied_.find(run); asked != denied_.end())
    text += fmt::format(", denied {}/{}", to_string(asked->second.attempt), asked->second.seq);
  if (parked_rows_[run.raw()]) text += ", parked for money";
  for (const PoisonBook::Blame& b : poison_.blames(run))
    text += fmt::format(", blamed {} at {} {}", b.attempt.raw(), b.worker.raw(), b.boot.raw());
  if (!out) return text;
  const Attempt& a = it->second;
  const bool asked = a.state == State::kIntent || a.state == State::kReserving;
  text += fmt::format("; {}/{} {} {}", to_string(a.id), a.seq, a.ask.micros(),
                      asked         ? "asked"
                      : a.is_over() ? fmt::format("over at {}", a.cost.total().micros())
                                    : "granted");
  if (!asked) text += " to " + (a.owner ? roster_.at(*a.owner).id.raw() : std::string("nobody"));
  return text + (dominant_ids_.contains(a.id) ? ", dominates" : "");
}

std::map<std::string, std::string> Scheduler::durable() const {
  std::map<std::string, std::string> out;
  for (std::uint32_t r = 0; r < phases_.size(); ++r)
    out[fmt::format("run {}", r)] = durable_run(RunId(r));
  std::vector<MicroUsd> reserved(balances_.size());
  for (const auto& [run, a] : live_) {
    if (a.state == State::kClosing) continue;
    const MicroUsd ask = a.ask;
    plan_.each_scope(run, [&](ScopeId s) { reserved[s.raw()] = reserved[s.raw()] + ask; });
  }
  for (std::uint32_t s = 0; s < balances_.size(); ++s)
    out["envelope " + plan_.scopes[s].name] =
        fmt::format("{} spent and {} reserved of {}", balances_[s].spent.micros(),
                    reserved[s].micros(), balances_[s].cap.micros());
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    const bool told = s.drained || s.quarantine != WorkerState::Quarantine::kNone ||
                      s.kicked != BootId(0) || s.quarantines != 0;
    if (told)
      out["worker " + s.id.raw()] =
          fmt::format("{}quarantine {} ({}), {} of them, kicked {}", s.drained ? "drained, " : "",
                      static_cast<int>(s.quarantine), s.reason, s.quarantines, s.kicked.raw());
  }
  for (const FaultSubject& subject : faults_.subjects())
    out[fmt::format("{} {}", subject.kind == FaultSubject::Kind::kTask ? "task" : "method",
                    subject.index)] =
        faults_.describe(subject) + (faults_.is_parked(subject) ? "; parked" : "");
  for (const std::uint16_t method : started_methods_) out[fmt::format("began {}", method)] = "yes";
  for (const auto& [id, worker] : lost_) out["late " + to_string(id)] = worker.raw();
  for (const auto& [scope, percent] : alerts_.standing())
    out[fmt::format("alert {} {}", scope.raw(), percent)] = "told";
  for (const GateBook::Gate& g : gates_.gates()) {
    std::string by;
    for (const auto& [name, digest] : g.approved) by += ", " + name + " for " + digest.short_hex();
    out["gate " + g.stage] =
        fmt::format("{}, checked {}{}", g.open ? "open" : "shut", g.checked.short_hex(), by);
  }
  for (const auto& [stage, criteria] : gates_.waived)
    out["waived " + stage] = fmt::format("{}", fmt::join(criteria, ", "));
  for (const std::string& stage : gates_.closed) out[stage] = "closed";
  for (const auto& [id, tasks] : safety_.modes())
    out["safety " + id] = fmt::format("{}", fmt::join(tasks, " "));
  for (const RunDominates& d : dominant_) out["dominant " + to_string(d.attempt)] = "told";
  out["campaign"] = fmt::format(
      "{}{}{} alerts, {} reviews; ended {} {} {} {}; {} cancelled, {} held, {} removed",
      paused_ ? "paused, " : "", suspended_ ? "suspended, " : "", alerts_.told().size(), reviews_,
      ended_[0], ended_[1], ended_[2], ended_[3], cancelled_, held_, removed_);
  return out;
}

// The scheduler's part that begins with what an earlier life left in the journal.

namespace {
// As far as the row says it: what nobody decides by is not read back.
AttemptResult result_of(const RestoredAttempt& r) {
  AttemptResult out;
  out.attempt = r.attempt;
  out.outcome = r.outcome;
  out.termination = r.termination;
  out.infrastructure = r.infrastructure;
  out.overload = r.overload;
  out.usage = r.usage;
  out.sets_outcome = r.sets_outcome;
  return out;
}
}  // namespace

Status Scheduler::restore(const RestoredState& state) {
  const auto not_of_this_plan = [&](RunId run) { return plan_.runs.size() <= run.raw(); };
  const Error foreign{Errc::kCorrupt, "journal: a run the plan does not have"};
  for (const EndedRun& e : state.ended) {
    if (not_of_this_plan(e.run)) return foreign;
    restore_fact(RunEnded{e.run, {e.run, e.attempt}, e.outcome});
  }
  for (const BudgetAlert& a : state.alerts) {
    if (plan_.scopes.size() <= a.scope.raw() || plan_.scopes[a.scope.raw()].name != a.name)
      return Error{Errc::kCorrupt, "journal: an alert of an envelope that is not there"};
    restore_fact(a);
  }
  for (const RunDominates& d : state.dominant) {
    if (not_of_this_plan(d.attempt.run)) return foreign;
    restore_fact(d);
  }
  for (const ParkedRun& p : state.parked) {
    if (not_of_this_plan(p.run)) return foreign;
    restore_fact(RunParked{p.run, p.scope, p.short_by, WallTime(0)});
  }
  for (const Note& n : state.standing) PROCTOR_CHECK_OK(restore_note(n));
  for (const RestoredAttempt& a : state.attempts) {
    if (not_of_this_plan(a.attempt.run)) return foreign;
    restore_attempt(a);
    if (a.settled) restore_fact(AttemptSettled{a.attempt, a.charged, {}, a.overrun, WallTime(0)});
  }
  for (const RunReviewed& r : state.reviews) {
    if (not_of_this_plan(r.run)) return foreign;
    restore_fact(r);
  }
  return ok_status();
}

// A row stands for these facts, in the order in which they happened.
void Scheduler::restore_attempt(const RestoredAttempt& r) {
  PROCTOR_ASSERT(!started_);
  using From = AttemptState;
  const bool is_out = !r.settled && r.state != From::kVoided && r.state != From::kDenied;
  if (is_out)
    apply(AttemptIntent{r.attempt, r.seq, r.ask, WallTime(0)});
  else
    count_made(r.attempt);
  if (!r.worker.raw().empty()) apply(AttemptGranted{r.attempt, r.worker, r.boot, r.granted_at});
  if (r.state == From::kDenied)
    apply(AttemptDenied{r.attempt, r.seq, r.denied_scope, r.short_by, WallTime(0)});
  if (r.state == From::kLost) apply(AttemptLost{r.attempt, {}, WallTime(0), r.worker});
  if (r.has_result) apply(result_of(r));
  if (is_out) take_up(r);
}

// Which effect of an attempt that is out this life has to ask for again, or waits for.
void Scheduler::take_up(const RestoredAttempt& r) {
  const RunId run = r.attempt.run;
  Attempt& a = live_.at(run);
  switch (r.state) {
    case AttemptState::kReserving:
      a.state = State::kReserving;  // asked again under the same id
      break;
    case AttemptState::kGranted:
      a.state = State::kAssigned;  // perhaps sent: its worker's Sync tells
      a.granted_to = roster_.index_of(r.worker);
      a.granted_boot = r.boot;
      list_at(*a.granted_to, run);
      unclaimed_.insert(run);
      break;
    case AttemptState::kFinished:
    case AttemptState::kCancelled:
    case AttemptState::kLost:
      a.state = State::kSettling;
      break;
    case AttemptState::kDenied:
    case AttemptState::kVoided:
      break;  // they are not out
  }
  count_metered(a);
}

Status Scheduler::restore_note(const Note& note) {
  PROCTOR_ASSERT(!started_);
  PROCTOR_TRY(const StandingFact fact, standing_fact_of(note));
  const auto corrupt = [&](const char* why) { return Error{Errc::kCorrupt, note.kind + why}; };
  const auto fits = [&](RunId run) { return run.raw() < plan_.runs.size(); };
  const auto all_fit = [&](const std::vector<AttemptId>& ids) {
    return std::ranges::all_of(ids, fits, &AttemptId::run);
  };
  if (const auto* act = std::get_if<OperatorFact>(&fact))
    if (!std::ranges::all_of(act->act.runs, fits) || !all_fit(act->forgiven) ||
        !all_fit(act->set_aside))
      return corrupt(": a run the plan does not have");
  const auto lacks = [&](const auto* of) { return of != nullptr && !fits(of->attempt.run); };
  if (lacks(std::get_if<LossJudged>(&fact)) || lacks(std::get_if<SafetySeen>(&fact)))
    return corrupt(": a run the plan does not have");
  if (const auto* held = std::get_if<RunEscalated>(&fact))
    if (!fits(held->run)) return corrupt(": a run the plan does not have");
  if (const auto* checked = std::get_if<StageChecked>(&fact))
    PROCTOR_CHECK_OK(gates_.fits(*checked));
  if (const auto* opened = std::get_if<StageOpened>(&fact)) PROCTOR_CHECK_OK(gates_.fits(*opened));
  if (const auto* fault = std::get_if<FaultFact>(&fact))
    if (const RunId run = fault->attempt.run; !fits(run) || (fault->subject != task_subject(run) &&
                                                             fault->subject != method_subject(run)))
      return corrupt(": of a run that is not so in the plan");
  roster_.set_time(note.at);  // of what it says of a worker
  std::visit([this](const auto& f) { apply(f); }, fact);
  return ok_status();
}

// After everything is restored, with the time: who waits, and for how long.
void Scheduler::restore_waits() {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    // It begins again: nobody knows how long the pause between the two lives was.
    if (roster_.at(w).quarantine == WorkerState::Quarantine::kFailures) stand_back(w);
  }
  for (const RunId run : poison_.awake())
    if (phases_[run.raw()] == RunPhase::kEnded) poison_.rest(run);
  if (settings_.retries.escalate) hold_used_up();
  const bool is_any_shut = !faults_.parked().empty() || !unstarted_.empty();
  // After those: who waits for a person's decision waits for it whatever else is broken.
  for (std::uint32_t r = 0; is_any_shut && r < phases_.size(); ++r)
    if (is_shut(RunId(r))) shut(RunId(r));
}

// What no life has decided yet: attempts that `journal recover` enters as lost may be the last that
// were left.
void Scheduler::hold_used_up() {
  for (std::uint32_t r = 0; r < phases_.size(); ++r) {
    const auto used_up = [&](RetryClass of) { return retries_of(of) < failures_of(RunId(r), of); };
    const bool over = used_up(RetryClass::kInfrastructure) || used_up(RetryClass::kOverload) ||
                      poison_.is_over(RunId(r));
    if (over && !waits_for_start(RunId(r)) &&
        (phases_[r] == RunPhase::kQueued || phases_[r] == RunPhase::kActive))
      hold_for_decision(RunId(r), "no attempt is left");
  }
}

// The scheduler's part that explains: why a run is where it is, by the predicates that decide.

namespace {
using Facts = std::vector<std::pair<std::string, Explanation::Value>>;

std::int64_t whole(std::uint64_t n) {
  return static_cast<std::int64_t>(n);
}

// Of what a run needs of a host or of a release, only what somebody who is here lacks is worth a
// word.
std::string describe_needs(std::uint64_t needs, const PlanView& plan, const Roster& roster) {
  std::uint64_t all_have = capability::kAll;
  for (WorkerIndex w = 0; w < roster.size(); ++w)
    if (roster.at(w).present) all_have &= roster.at(w).has;
  constexpr std::uint64_t kCommon = capability::kThings | capability::kOfRelease;
  return capability::describe(needs & ~(all_have & kCommon), plan.things);
}
}  // namespace

Explanation Scheduler::why(RunId run) const {
  const auto live = live_.find(run);
  switch (phases_[run.raw()]) {
    case RunPhase::kEnded:
      return {"ended", "it has ended"};
    case RunPhase::kRemoved:
      return {"removed", "its task was removed from the campaign"};
    case RunPhase::kCancelled:
      if (live != live_.end())
        return {"cancelling", "it was cancelled by the operator, and its attempt " +
                                  to_string(live->second.id) + " is being ended"};
      if (gates_.is_closed(plan_, run)) return {"cancelled", "its stage was closed by an operator"};
      return {"cancelled", "it was cancelled by the operator; requeue puts it in line again"};
    case RunPhase::kHeld:
      return {
          "decision",
          "no attempt is left: it waits for a person (proctor approve tries it once more, proctor "
          "cancel ends it)",
          {{"failures", std::int64_t{failures_[run.raw()]}},
           {"worker_losses", whole(poison_.blames(run).size())}}};
    case RunPhase::kParked:
      if (shut_.contains(run)) return why_shut(run);
      return {"parked",
              "it is parked: an envelope has too little money left and none will come back"};
    case RunPhase::kBackoff: {
      const Backoff& b = backoff_.at(run);
      const bool overload = b.of == RetryClass::kOverload;
      return {"backoff",
              "it is tried again at " + to_rfc3339(b.until_wall) +
                  (overload ? ": a provider of models had no room"
                            : ": its last attempt was lost to infrastructure" + told_fault(run)),
              {{"class", std::string(overload ? "overload" : "infrastructure")},
               {"until_ms", b.until_wall.raw()}}};
    }
    case RunPhase::kActive:
      return why_active(run);
    case RunPhase::kQueued:
      return why_waiting(run);
  }
  return {"", ""};
}

// Why its task or method is parked, and the way out.
Explanation Scheduler::why_shut(RunId run) const {
  const bool task = faults_.is_parked(task_subject(run));
  if (!task && !faults_.is_parked(method_subject(run)))
    return {"parked",
            "its program could not start: it is a failure once an agent of its method is at work, "
            "and invalid if none ever is; requeue lets it try again",
            {{"fault", "method"}}};
  return {"parked",
          describe_fault(task ? task_subject(run) : method_subject(run)) +
              "; requeue puts it in line again",
          {{"fault", std::string(task ? "task" : "method")}}};
}

// What has failed of its task or method since it last worked; empty: nothing.
std::string Scheduler::told_fault(RunId run) const {
  for (const auto& [subject, what] : {std::pair(task_subject(run), "; its task "),
                                      std::pair(method_subject(run), "; its method ")})
    if (faults_.has_row(subject)) return what + faults_.describe(subject);
  return "";
}

Explanation Scheduler::why_active(RunId run) const {
  const auto it = live_.find(run);
  if (it == live_.end()) return {"between", "it is between two attempts"};
  const Attempt& a = it->second;
  Facts facts{{"attempt", std::int64_t{a.id.no.raw()}}};
  std::string where;
  if (a.worker) {
    where = " on worker " + roster_.at(*a.worker).id.raw();
    facts.emplace_back("worker", roster_.at(*a.worker).id.raw());
  }
  if (a.alone) where += ", alone: earlier ones ended with their workers";
  if (suspended_) where += "; it is suspended";
  if (a.worker && roster_.at(*a.worker).suspect)
    where += "; that worker is " + told_standing(*a.worker);
  return {"running", "attempt " + std::to_string(a.id.no.raw()) + " is under way" + where,
          std::move(facts)};
}

// In the order in which it would be held back: see dispatch(), RunQueue::next() and judge().
Explanation Scheduler::why_waiting(RunId run) const {
  if (mode_ != Mode::kRun) return {"draining", "the campaign is stopping: nothing more is started"};
  if (paused_)
    return {"paused", "the campaign is paused" +
                          (paused_why().empty() ? "" : " (" + paused_why() + ")") +
                          ": nothing is started until unpause"};
  if (gates_.shut_from() <= run.raw()) return why_behind_gate();
  const auto waits_at = [&](ScopeId scope, const std::string& text) -> Explanation {
    const ScopeBalance& b = balances_[scope.raw()];
    Facts facts{{"envelope", plan_.scopes[scope.raw()].name},
                {"needs_micro_usd", plan_.task_of(run).ask.micros()},
                {"free_micro_usd", b.free().micros()},
                {"reserved_micro_usd", b.reserved.micros()}};
    if (scope != plan_.shared) return {"envelope", text, std::move(facts)};
    facts.emplace_back("elsewhere_micro_usd", b.elsewhere.held.micros());
    return {"envelope",
            text + "; other campaigns hold " + format_usd(b.elsewhere.held) +
                " of it (proctor budget says who)",
            std::move(facts)};
  };
  const RunQueue::Answer now = judge(run);
  const auto named = [&](ScopeId s) { return plan_.scopes[s.raw()].name; };
  if (const auto scope = queue_.waiting_for(run))
    return waits_at(*scope, "it waits for money in " + named(*scope) +
                                ": what is reserved there may come back");
  if (const auto scope = queue_.waits_behind(run))
    return waits_at(*scope,
                    "an earlier run waits for money in " + named(*scope) + ", which it needs too");
  if (now.verdict == RunQueue::Verdict::kWaitForScope)
    return waits_at(now.scope, "it waits for money in " + named(now.scope) +
                                   ": what is reserved there may come back");
  if (now.verdict == RunQueue::Verdict::kWaitForWorker) return why_no_worker(run);
  const std::uint64_t before = before_in_line(run);
  if (before == 0) return {"order", "it is the next in line", {{"before", std::int64_t{0}}}};
  return {"order",
          "it waits for its turn in the plan's order: " + std::to_string(before) +
              (before == 1 ? " run is before it" : " runs are before it"),
          {{"before", whole(before)}}};
}

Explanation Scheduler::why_no_worker(RunId run) const {
  const std::uint64_t needs = plan_.needs_of(run);
  const std::string what = describe_needs(needs, plan_, roster_);
  Facts facts{{"needs", what}, {"before", whole(before_in_line(run))}};
  if (poison_.is_suspect(run)) {
    facts.emplace_back("worker_losses", whole(poison_.blames(run).size()));
    return {"alone",
            "its worker died under it " + std::to_string(poison_.blames(run).size()) +
                " times: it waits for a worker with " + what + " that has nothing else",
            std::move(facts)};
  }
  if (waits_for_another(run))
    return {"elsewhere", "it waits for another worker with " + what + told_fault(run),
            std::move(facts)};
  const std::string waits = "it waits for a free worker with " + what;
  const bool here = roster_.anyone_has(needs);
  std::string others;  // who could run it, were it not for this
  std::size_t n = 0;
  constexpr std::size_t kShown = 3;
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (!roster_.has_place(w) || s.present != here || (here && (needs & ~s.has) != 0)) continue;
    if (s.takes_new()) return {"worker", waits, std::move(facts)};  // it is busy
    facts.emplace_back("worker " + s.id.raw(), standing(s));
    if (++n <= kShown)
      others += (others.empty() ? "" : ", ") + s.id.raw() + " is " + told_standing(w);
  }
  if (kShown < n) others += " and " + std::to_string(n - kShown) + " more likewise";
  if (here) {
    if (n == 1) return {"worker", waits + ": the only one, " + others, std::move(facts)};
    return {"worker", waits + ", and nobody of them takes work: " + others, std::move(facts)};
  }
  const std::string start =
      "; start one with proctor-worker --connect, or stop this and proctor "
      "resume --workers N";
  if (const std::uint64_t present = roster_.present(); 0 < present) {
    std::string refused;  // of those who could, but for their host, its disk or their release
    for (WorkerIndex w = 0; w < roster_.size(); ++w) {
      const WorkerState& s = roster_.at(w);
      if (s.present && (s.has & capability::kFullDisk) != 0) {
        facts.emplace_back("full " + s.id.raw(), "disk");
        refused += "; the disk of " + s.id.raw() + " is full: free space there, and it goes on";
      }
      if (const std::uint64_t lacks = needs & ~s.has & capability::kOfRelease;
          s.present && lacks != 0) {
        const std::string missing = capability::describe(lacks);
        facts.emplace_back("older " + s.id.raw(), missing);
        refused += "; " + s.id.raw() + " is of a release without " + missing +
                   ": start a newer proctor-worker there";
      }
      const std::string unfit = s.present ? capability::describe_unfit(needs, s.has) : "";
      if (unfit.empty()) continue;
      facts.emplace_back("unfit " + s.id.raw(), unfit);
      refused += "; " + s.id.raw() + " does not offer " + unfit +
                 ", which does not isolate there (proctor-worker selftest says what to do)";
    }
    return {"capability",
            waits + ": of " + std::to_string(present) + " here " +
                (present == 1 ? "it has none" : "none has that") + refused + start,
            std::move(facts)};
  }
  if (others.empty() && last_gone_)
    others = last_gone_->first.raw() + " is gone since " + to_rfc3339(last_gone_->second);
  return {"capability",
          waits + ": none is here, and " +
              (others.empty() ? "none has ever joined; this coordinator has run since " +
                                    to_rfc3339(started_at_)
                              : others) +
              start,
          std::move(facts)};
}

// standing(), since when, until when, and what ends it.
std::string Scheduler::told_standing(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  const std::string since = s.since.raw() == 0 ? "" : " since " + to_rfc3339(s.since);
  if (!s.present) return "gone" + since;
  const std::string release = ", until proctor release CAMPAIGN " + s.id.raw();
  if (s.quarantine == WorkerState::Quarantine::kFailures)
    return "quarantined" + since + " until " + to_rfc3339(s.back_at_wall) + ": " + s.reason +
           " (proctor release CAMPAIGN " + s.id.raw() + " ends it now)";
  if (s.quarantine == WorkerState::Quarantine::kOperator)
    return "quarantined" + since + release + ": " + s.reason;
  if (s.drained) return "drained" + since + release;
  if (!s.suspect) return standing(s) + since;
  return "suspect" + since + ": it has not been heard of, and is given up at " +
         to_rfc3339(*given_up_at(w)) + " unless it is";
}

// When its runs are taken for lost, if it stays as silent.  Nothing: it is no suspect.
std::optional<WallTime> Scheduler::given_up_at(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  if (!s.present || !s.suspect) return std::nullopt;
  return WallTime(now_.wall.raw() + (s.last_sync + lease_of(w) - now_.mono).count());
}

// Until when it stands as it does, where that is known.
std::optional<WallTime> Scheduler::stands_until(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  if (s.present && s.quarantine == WorkerState::Quarantine::kFailures) return s.back_at_wall;
  return given_up_at(w);
}

std::vector<Scheduler::UnderWay> Scheduler::under_way(std::size_t most) const {
  std::vector<UnderWay> out;
  for (const auto& [run, a] : live_) {
    if (out.size() == most) break;
    out.push_back({run, a.worker ? roster_.at(*a.worker).id : WorkerId("")});
  }
  return out;
}

std::uint64_t Scheduler::before_in_line(RunId run) const {
  const auto end = phases_.begin() + run.raw();
  return static_cast<std::uint64_t>(std::count(phases_.begin(), end, RunPhase::kQueued));
}

std::string Scheduler::waiting_for_workers() const {
  std::map<std::uint64_t, std::size_t> by_needs;
  for (const auto& [needs, runs] : queue_.waiting_for_workers())
    by_needs[needs & ~(capability::kAlone | capability::kElsewhere)] += runs;
  std::string out;
  for (const auto& [needs, runs] : by_needs) {
    if (roster_.anyone_has(needs)) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(runs) +
           (runs == 1 ? " run waits" : " runs wait") + " for a worker with " +
           describe_needs(needs, plan_, roster_);
  }
  if (out.empty()) return out;
  for (WorkerIndex w = 0; w < roster_.size(); ++w)
    if (roster_.at(w).present && (roster_.at(w).has & capability::kFullDisk) != 0)
      return out + ", for the disk of " + roster_.at(w).id.raw() + " is full: free space there";
  return out;
}

Json to_json(const Explanation& why) {
  Json facts = Json::object();
  for (const auto& [name, value] : why.facts)
    std::visit([&, key = name](const auto& v) { facts[key] = v; }, value);
  return {{"code", why.code}, {"text", why.text}, {"facts", std::move(facts)}};
}
}  // namespace proctor
