// The scheduler's parts that deal with attempts: their money, their course, results, failures.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "common/trace/run_report.h"
#include "common/wire/messages.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
// The scheduler's part that deals with money: what a run must wait for, what comes back, what is
// told about envelopes and about runs that use up theirs.

namespace {
// Of two totals of one attempt: can `now` be the later one?
bool is_at_least(const Usage& now, const Usage& before) {
  return std::ranges::all_of(
      kUsageCounters, [&](const UsageCounter& c) { return before.*c.member <= now.*c.member; });
}
}  // namespace

RunQueue::Answer Scheduler::judge(RunId run) const {
  const PlanView::Task& task = plan_.task_of(run);
  if (!worker_for(run)) return {RunQueue::Verdict::kWaitForWorker, {}, needs_of(run)};
  for (const ScopeId scope : plan_.path(run)) {
    const ScopeBalance& b = balances_[scope.raw()];
    const auto refused = refused_.find(scope);
    const bool is_short =
        b.free() < task.ask || (refused != refused_.end() && refused->second <= task.ask);
    // Short, but some of it may come back: wait.  Short with nothing out: ask, and let the ledger
    // say so.
    if (is_short && (MicroUsd::zero() < b.reserved || b.elsewhere.may_return))
      return {RunQueue::Verdict::kWaitForScope, scope, 0};
  }
  return {RunQueue::Verdict::kTake, {}, 0};
}

// A million runs behind an exhausted envelope must not cost a million questions: what the ledger
// refused once it refuses again for the same or a larger ask while nothing has changed.
bool Scheduler::park_if_known_short(RunId run) {
  const MicroUsd ask = plan_.task_of(run).ask;
  for (const ScopeId scope : plan_.path(run)) {
    const auto known = known_short_.find(scope);
    if (known == known_short_.end()) continue;
    const ScopeBalance& b = balances_[scope.raw()];
    if (b.spent != known->second.first || ask < known->second.second) continue;
    if (b.reserved != MicroUsd::zero() || b.elsewhere.may_return) continue;
    park(run, scope, ask - b.free());
    return true;
  }
  return false;
}

// It waits for money, and is asked for no more before there is some.
void Scheduler::park(RunId run, ScopeId scope, MicroUsd short_by) {
  record(RunParked{run, scope, short_by, now_.wall});
  phases_[run.raw()] = RunPhase::kParked;
  ++parked_;
}

// It waits for money no longer.  One that this life has not asked for yet is in line already.
void Scheduler::unpark(RunId run) {
  record(RunUnparked{run});
  if (phases_[run.raw()] != RunPhase::kParked) return;
  --parked_;
  in_line(run);
}

void Scheduler::money_back(ScopeId scope) {
  refused_.erase(scope);
  queue_.wake_scope(scope);
}

void Scheduler::handle(const ElsewhereHeld& e) {
  if (!plan_.shared) return;
  balances_[plan_.shared->raw()].elsewhere = e.held;
  known_short_.erase(*plan_.shared);
  money_back(*plan_.shared);
}

void Scheduler::handle(const Settled& e) {
  for (const Settled::Answer& got : e.answers) {
    Attempt* a = live(got.id.attempt);  // else it is repeated
    if (a != nullptr && a->state == State::kSettling) settled(*a, got.answer);
  }
}

void Scheduler::settled(Attempt& a, const SettleAnswer& answer) {
  a.state = State::kClosing;
  count_metered(a);
  record(AttemptSettled{a.id, answer.charged, a.cost, answer.overrun, now_.wall},
         After{Step::kForget, a.id, a.seq, 0});
  plan_.each_scope(a.id.run, [&](ScopeId s) {
    money_back(s);
    tell_spent(s);
  });
  if (MicroUsd::zero() < answer.overrun)
    out_.push_back(Alert{"attempt " + to_string(a.id) + " metered " + format_usd(answer.overrun) +
                         " " + money_word(settings_.cost_model) +
                         " above what was reserved for it"});
}

// Alerts about money, and what workers say of it.

// Written with the settlement that reached the level: both are durable, or neither is.
void Scheduler::tell_spent(ScopeId scope) {
  if (plan_.follows_global(scope)) return;  // the campaign's own alert says the same
  const std::string& name = plan_.scopes[scope.raw()].name;
  for (const BudgetAlert& alert : alerts_.reached(scope, name, balances_[scope.raw()], now_.wall)) {
    record(alert);
    out_.push_back(Alert{describe(alert, money_word(settings_.cost_model)), true, std::nullopt});
  }
}

// Totals are cumulative.  One that is smaller than it was is no total: it changes nothing.
bool Scheduler::take_usage(Attempt& a, const Usage& said) {
  if (!is_at_least(said, a.usage)) {
    if (!std::exchange(a.doubted, true))
      out_.push_back(
          Alert{"its worker stated less usage than before: not believed", false, a.id.run});
    return false;
  }
  a.usage = said;
  a.metered = std::min(a.ask, price(settings_.cost_model, said).total());
  count_metered(a);
  return true;
}

void Scheduler::doubt_sender(WorkerIndex w, const AttemptId& id) {
  if (!doubted_.insert(w).second) return;
  out_.push_back(Alert{"worker " + roster_.at(w).id.raw() + " states usage of attempt " +
                       to_string(id) + ", which is not its own: not believed"});
}

// Whatever changed of it is counted at once: a walk over a hundred thousand of them, once a second,
// held up everybody else.
void Scheduler::count_metered(Attempt& a) {
  const MicroUsd used = a.used();
  if (used == a.counted) return;
  plan_.each_scope(a.id.run,
                   [&](ScopeId s) { metered_[s.raw()] = metered_[s.raw()] - a.counted + used; });
  a.counted = used;
}

// R190: much of its money is used and it has nothing to show.  Only while its agent works: what
// comes after that is its judgement.
void Scheduler::watch_run(Attempt& a, const wire::RunningAttempt& said) {
  if (!take_usage(a, said.usage)) return;
  if (said.stage != wire::Stage::kAgent || dominant_ids_.contains(a.id)) return;
  const MicroUsd cost = price(settings_.cost_model, said.usage).total();
  if (!dominates(settings_.watch.dominance, cost, a.ask, said.milestones)) return;
  const bool stop = settings_.watch.dominance.action == BudgetWatch::Dominance::Action::kStop;
  const RunDominates fact{a.id, cost, a.ask, said.milestones, stop, now_.wall};
  record(fact);
  out_.push_back(Alert{describe(fact, money_word(settings_.cost_model)), true, a.id.run});
}

// Its share of the calls per minute.  A worker of before rates asks for none: it refuses the
// settings of a campaign that has any.
void Scheduler::share_rates(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply) {
  reply.ticket = sync.ticket;  // says which Sync this answers, also where there are no rates
  reply.holds = rates_.pass_on(sync.holds, now_.mono);
  if (rates_.none() || sync.ticket == 0) return;
  reply.shares = rates_.renew(
      sync.worker, sync.boot,
      {sync.ticket, sync.obeyed, sync.calls, sync.slots, roster_.at(w).held}, now_.mono);
}

// The scheduler's part that deals with one attempt from its ask to its end: what the ledger said,
// and where it goes.

constexpr std::uint16_t kAttemptsMax = 60'000;

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

// Answers of the ledger.

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
  if (const std::string why = why_not_now(a.id.run); !why.empty()) return void_attempt(a, why);
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
  if (const std::string why = why_not_now(a.id.run); !why.empty()) return void_attempt(a, why);
  const WorkerState& w = roster_.at(*a.worker);
  if (!w.takes_new()) return void_attempt(a, "its worker is " + standing(w));
  // It is leaving, or serves several campaigns and gave the slot to another when it heard that we
  // know.
  if (w.slots < w.held) return void_attempt(a, "its worker has no slot for it any more");
  a.state = State::kAssigned;
  a.since = now_.mono;
  a.sent_to = w.boot;
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

// The scheduler's part that deals with results.

namespace {
// Times that cannot be are not known (0): reports count with them.
AttemptResult record_of(const wire::ResultMessage& r, WallTime granted, WallTime at) {
  const bool known = wrong_times(r.started_ms, r.finished_ms, granted, at).empty();
  return AttemptResult{.attempt = r.attempt,
                       .outcome = r.outcome,
                       .termination = r.termination,
                       .rationale = r.rationale,
                       .infrastructure = r.infrastructure,
                       .overload = r.overload,
                       .report = r.report,
                       .archive = r.archive,
                       .archive_bytes = r.archive_bytes,
                       .usage = r.usage,
                       .started_ms = known ? r.started_ms : 0,
                       .finished_ms = known ? r.finished_ms : 0,
                       .at = at,
                       .facts = r.facts};
}

// Could end its run with an outcome that counts.
bool decides(const wire::ResultMessage& r) {
  return !r.infrastructure && r.termination != Termination::kOperatorCancel;
}

// Nobody can check what such a result says, so it decides nothing: its worker has failed.
wire::ResultMessage without_evidence(wire::ResultMessage r) {
  std::string why = "no evidence came with its result, which said " +
                    std::string(to_string(r.outcome)) + ": " + r.rationale;
  if (limits::kDetailBytes < why.size()) why.resize(limits::kDetailBytes);
  wire::lose_evidence(r, std::move(why));
  return r;
}
}  // namespace

// Benchmarks of everything but execution keep no evidence: there is nothing to check.
bool Scheduler::runs_nothing(RunId run) const {
  return (plan_.task_of(run).needs & capability::kNull) != 0;
}

bool Scheduler::is_late_of(WorkerIndex w, const AttemptId& id) const {
  const auto it = lost_.find(id);
  return it != lost_.end() && it->second == roster_.at(w).id;
}

void Scheduler::refuse_result(const ResultReceived& e, const std::string& why) {
  out_.push_back(Alert{"worker " + e.worker.raw() + " sent a result for attempt " +
                       to_string(e.result.attempt) + ", " + why});
}

WallTime Scheduler::granted_at(const AttemptId& id) const {
  const auto it = live_.find(id.run);
  return it == live_.end() || it->second.id != id ? WallTime(0) : it->second.granted_at;
}

bool Scheduler::awaits(const WorkerId& worker, const AttemptId& id) const {
  const std::optional<WorkerIndex> w = roster_.find(worker);
  if (!w || plan_.runs.size() <= id.run.raw() || late_writing_.contains(id)) return false;
  if (is_late_of(*w, id)) return true;
  const auto it = live_.find(id.run);
  if (it == live_.end() || it->second.id != id || it->second.owner != w) return false;
  const State s = it->second.state;
  return s == State::kGranting || s == State::kAssigned || s == State::kRunning;
}

// Its Sync says what becomes of it: unless that has its result, it is lost at its ceiling.
void Scheduler::handle(const EvidenceHeard& e) {
  const std::optional<WorkerIndex> w = roster_.find(e.worker);
  Attempt* a = live(e.attempt);
  if (a == nullptr || !w || a->owner != w) return;
  a->at_work = true;
  if (a->state != State::kAssigned || !assigned_to(*a, *w)) return;
  a->state = State::kRunning;
  a->since = now_.mono;
}

void Scheduler::handle(const ResultReceived& e) {
  const wire::ResultMessage& r = e.result;
  const WorkerIndex w = roster_.index_of(e.worker);
  if (plan_.runs.size() <= r.attempt.run.raw() ||
      attempts_made_[r.attempt.run.raw()] < r.attempt.no.raw())
    return refuse_result(e, "which was never made");
  if (epoch_ < r.epoch) return refuse_result(e, "of an epoch that has not begun");
  Attempt* a = live(r.attempt);
  // Money follows attempts, and nobody but the worker that a grant names may speak of its attempt:
  // also after a restart of ours, and after the attempt was lost or has ended.
  if (is_anothers(r.attempt, w)) return refuse_result(e, "which is another worker's");
  const bool known_end =
      a == nullptr || a->state == State::kSettling || a->state == State::kClosing;
  if (known_end || (a->state == State::kFinishing && lost_.contains(r.attempt))) {
    // Late: evidence of its own attempt, never an outcome.  Its cost was charged when it was lost.
    if (lost_.contains(r.attempt)) {
      // One that came to its end shows that its worker did not die of it; what a killed worker says
      // of it in its next life shows nothing.
      if (!r.infrastructure && poison_.withdraw(r.attempt))
        withdraw_blame(r.attempt, e.worker, roster_.at(w).boot);
      late_writing_.insert(r.attempt);
      record(record_of(r, WallTime(0), now_.wall), After{Step::kAckLate, r.attempt, 0, w});
      if (r.archive_bytes != 0) watch_safety(r.attempt, r.facts.tags);
    } else if (!late_writing_.contains(r.attempt)) {
      acks_[w].push_back(r.attempt);  // sent again because our Ack was lost
    }
    return;
  }
  switch (a->state) {
    case State::kIntent:
    case State::kReserving:
      return refuse_result(e, "before it was assigned");
    case State::kFinishing:
      a->ack_to.push_back(w);  // being made durable: acknowledged then
      return;
    case State::kGranting:
    case State::kAssigned:
    case State::kRunning:
      // Assigned in this life of ours, and of another one: made up.
      if (a->sent_to && !a->granted_to && r.epoch != epoch_)
        return refuse_result(e, "of another epoch than its assignment");
      if (decides(r) && r.archive_bytes == 0 && !runs_nothing(r.attempt.run))
        return finish(*a, without_evidence(r), w);
      return finish(*a, r, w);
    case State::kSettling:
    case State::kClosing:
      return;  // above
  }
}

void Scheduler::finish(Attempt& a, const wire::ResultMessage& r, WorkerIndex from) {
  const RunId run = a.id.run;
  if (a.worker) a.ack_to.push_back(*a.worker);
  const bool cancelled = r.termination == Termination::kOperatorCancel;
  const bool wanted = phases_[run.raw()] == RunPhase::kActive;
  const bool died = died_with_worker(a, r, from);
  if (died) {
    hold_against(a.id, roster_.at(from).id, *a.begun_in);
  } else {
    // What it was killed under says nothing of the life it is in now.
    const BootId sent_to = a.sent_to ? *a.sent_to : a.granted_boot;
    if (sent_to == roster_.at(from).boot) judge_worker(from, r);
  }
  AttemptResult fact = record_of(r, a.granted_at, now_.wall);
  const bool convicted = died && a.alone && poison_.is_over(run) && wanted;
  if (convicted) fact.rationale += "; poison: " + convict(a.id);
  const bool failed = r.infrastructure && !cancelled;
  const bool unstarted = failed && r.fault == Fault::kAgent && r.facts.agent_exit;
  // An agent may choose its exit code: of a method that has been at work it is its failure.
  const bool its_failure =
      unstarted && wanted && started_methods_.contains(plan_.runs[run.raw()].method);
  bool again = cancelled || !wanted || unstarted;
  const RetryClass of = r.overload ? RetryClass::kOverload : RetryClass::kInfrastructure;
  const bool left = failed && !convicted && !unstarted && failures_of(run, of) < retries_of(of);
  if (failed) again = again || left || settings_.retries.escalate;
  fact.sets_outcome = !again;
  record(std::move(fact), After{Step::kAckAndSettle, a.id, a.seq, 0});
  watch_safety(a.id, r.facts.tags);
  if (left) wait_before_next(a, of);
  if (its_failure)
    record(RunEnded{run, a.id, RunOutcome::kFailure});
  else if (failed && !left && !unstarted && wanted && settings_.retries.escalate)
    hold_for_decision(run, convicted ? "it kills its workers" : "no attempt is left");
  if (cancelled) write(AttemptCancelled{a.id, "cancelled by the operator", now_.wall});
  release_slot(a);
  a.state = State::kFinishing;
  count_metered(a);
  a.since = now_.mono;
  if (!died) judge_fault(a.id, r, from);
}

void Scheduler::watch_safety(const AttemptId& attempt, std::string_view tags) {
  for (const auto& [mode, why] : safety_.news(tags, plan_.runs[attempt.run.raw()].task)) {
    record(SafetySeen{attempt, mode, now_.wall});
    if (why.empty()) continue;
    out_.push_back(Alert{fmt::format("the campaign is paused: {}; proctor list --where tag={} has "
                                     "them, unpause goes on",
                                     why, mode),
                         true, attempt.run});
    OperatorAct stop{.by = SafetySeen::kMonitor, .reason = why, .at = now_.wall, .mode = mode};
    record(OperatorFact{std::move(stop)}, After{Step::kObey, {}, 0, 0});
  }
}

// The scheduler's part that deals with failures that are not the agent's: what is counted against
// whom, how long it waits, when a run is given up and when a worker stands back.

namespace {
Millis quarantine_of(const SchedulerSettings& settings, std::uint32_t nth) {
  return doubled(settings.retries.quarantine, settings.retries.quarantine_max, nth);
}
}  // namespace

std::uint32_t Scheduler::failures_of(RunId run, RetryClass of) const {
  if (of == RetryClass::kInfrastructure) return failures_[run.raw()];
  const auto it = overloads_.find(run);
  return it == overloads_.end() ? 0 : it->second;
}

std::uint32_t Scheduler::retries_of(RetryClass of) const {
  return of == RetryClass::kOverload ? settings_.retries.overload
                                     : settings_.infrastructure_retries;
}

void Scheduler::wait_before_next(Attempt& a, RetryClass of) {
  const RunId run = a.id.run;
  a.wait = backoff(settings_.retries, of, failures_of(run, of), plan_.seed_of(run), a.id);
  a.wait_of = of;
}

void Scheduler::lose(Attempt& a, Loss why, const std::string& reason) {
  const bool blamed = blame(a, why);
  const bool convicted = blamed && a.alone && poison_.is_over(a.id.run);
  if (why == Loss::kKicked && a.worker) {
    const WorkerState& w = roster_.at(*a.worker);
    record(LossJudged{a.id, LossJudged::Verdict::kExcused, w.id, w.boot, now_.wall});
  }
  record(AttemptLost{a.id,
                     convicted ? reason + "; poison: " + describe_poison(poison_.blames(a.id.run))
                               : reason,
                     now_.wall, a.owner ? roster_.at(*a.owner).id : WorkerId()},
         After{Step::kSettleLost, a.id, a.seq, 0});
  release_slot(a);
  a.state = State::kFinishing;
  count_metered(a);
  if (why != Loss::kKicked) again_or_end(a, convicted);
}

// Only what had started there, and only what nothing else explains (DISTRIBUTED R13).
bool Scheduler::blame(const Attempt& a, Loss why) {
  const bool unexplained = why == Loss::kDied || why == Loss::kSilent;
  if (!unexplained || a.state != State::kRunning || !a.begun_in || !a.worker) return false;
  const WorkerState& w = roster_.at(*a.worker);
  hold_against(a.id, w.id, why == Loss::kDied && !w.past.empty() ? w.past.back() : w.boot);
  return true;
}

// A worker that was killed says in its next life what it was running (worker/shell/meter_book.h).
bool Scheduler::died_with_worker(const Attempt& a, const wire::ResultMessage& r,
                                 WorkerIndex from) const {
  // A worker that names a fault of task or method has seen the attempt end.
  return r.infrastructure && r.fault == Fault::kHost && !r.overload &&
         r.termination != Termination::kOperatorCancel && a.begun_in &&
         *a.begun_in != roster_.at(from).boot;
}

// A worker died under it, came back and goes on with it.  That is held against it as a loss is, and
// only who has nothing against it yet may go on: adopting gives no run more workers to kill.
bool Scheduler::outlived(Attempt& a, WorkerIndex w) {
  const WorkerId worker = roster_.at(w).id;
  if (!poison_.blames(a.id.run).empty()) {
    lose(a, Loss::kDied, "worker " + worker.raw() + " was restarted");
    return false;
  }
  note("outlived", a.id, worker.raw());
  hold_against(a.id, worker, *a.begun_in);
  return true;
}

void Scheduler::hold_against(const AttemptId& id, const WorkerId& worker, BootId boot) {
  record(LossJudged{id, LossJudged::Verdict::kBlamed, worker, boot, now_.wall});
}

// Its reason, once it is written down and told.
std::string Scheduler::convict(const AttemptId& id) {
  std::string why = describe_poison(poison_.blames(id.run));
  write(Note{now_.wall, kNotePoison, id.run, id.no, Json{{"why", why}}.dump()});
  out_.push_back(Alert{"poison: " + why, true, id.run});
  return why;
}

void Scheduler::withdraw_blame(const AttemptId& id, const WorkerId& worker, BootId boot) {
  record(LossJudged{id, LossJudged::Verdict::kWithdrawn, worker, boot, now_.wall});
  queue_.wake_workers(capability::kAll);  // who was a suspect may have company now
}

// Another attempt if the limit allows, else the run ends invalid or a person decides.
void Scheduler::again_or_end(Attempt& a, bool convicted) {
  const RunId run = a.id.run;
  constexpr RetryClass kOf = RetryClass::kInfrastructure;
  if (phases_[run.raw()] != RunPhase::kActive) return;  // cancelled
  if (convicted) (void)convict(a.id);
  const bool left = !convicted && failures_of(run, kOf) <= retries_of(kOf);
  if (left) return wait_before_next(a, kOf);
  if (settings_.retries.escalate)
    return hold_for_decision(run, convicted ? "it kills its workers" : "no attempt is left");
  record(RunEnded{run, a.id, RunOutcome::kInvalid});
}

void Scheduler::hold_for_decision(RunId run, const std::string& reason) {
  record(RunEscalated{run, reason, now_.wall});
  out_.push_back(Alert{"a person decides (approve or cancel): " + reason, true, run});
}

// Runs whose pause is over are in line again.  A run that waits for what its method's others show
// ends: as a failure, once an agent of the method is at work; as invalid (or a person decides),
// where nothing is left to be done that could show one.
void Scheduler::end_waits() {
  while (!due_.empty() && due_.begin()->first <= now_.mono) {
    const RunId run = due_.begin()->second;
    due_.erase(due_.begin());
    backoff_.erase(run);
    in_line(run);
  }
  const bool over = live_.empty() && backoff_.empty() && held_ == 0 && queue_.empty();
  std::erase_if(unstarted_, [&](const auto& item) {
    const auto [run, no] = item;
    const bool started = started_methods_.contains(plan_.runs[run.raw()].method);
    const RunPhase phase = phases_[run.raw()];
    const bool waits = phase == RunPhase::kParked || (started && phase == RunPhase::kHeld);
    if (!waits || !waits_for_start(run) || !(over || started)) return false;
    if (!started && settings_.retries.escalate) {
      hold_for_decision(run, "its program could not start");
      return false;
    }
    record(RunEnded{run, {run, no}, started ? RunOutcome::kFailure : RunOutcome::kInvalid});
    return true;
  });
}

// It is to be done (again): at once, or when the attempt that is still ending has ended.
void Scheduler::in_line(RunId run) {
  if (live_.contains(run))
    phases_[run.raw()] = RunPhase::kActive;
  else
    queue_or_shut(run);
}

// Workers that fail.

void Scheduler::judge_worker(WorkerIndex w, const wire::ResultMessage& r) {
  if (r.termination == Termination::kOperatorCancel || r.overload) return;  // says nothing of it
  if (r.fault != Fault::kHost) return;  // nor this, until it works elsewhere (fault_worked)
  if (r.infrastructure || r.facts.not_judged) return count_host_failure(w);
  const WorkerState& s = roster_.at(w);
  if (s.quarantines != 0)
    return record(WorkerJudged{s.id, WorkerJudged::Verdict::kRecovered, 0, {}, {}, now_.wall});
  if (s.failures != 0) roster_.edit(w, [](WorkerState& x) { x.failures = 0; });
}

void Scheduler::count_host_failure(WorkerIndex w) {
  roster_.edit(w, [](WorkerState& s) { ++s.failures; });
  const WorkerState& s = roster_.at(w);
  if (settings_.retries.quarantine_after <= s.failures &&
      s.quarantine == WorkerState::Quarantine::kNone)
    quarantine(w);
}

void Scheduler::quarantine(WorkerIndex w) {
  const WorkerState& s = roster_.at(w);
  const std::uint32_t nth = s.quarantines + 1;
  record(WorkerJudged{s.id, WorkerJudged::Verdict::kQuarantined, nth, quarantine_of(settings_, nth),
                      std::to_string(s.failures) + " infrastructure failures in a row", now_.wall});
  stand_back(w);
  out_.push_back(
      Alert{"worker " + s.id.raw() + " gets nothing for a while: " + s.reason, true, {}});
}

// Until when, by this life's clocks.
void Scheduler::stand_back(WorkerIndex w) {
  roster_.edit(w, [&](WorkerState& s) {
    const Millis wait = quarantine_of(settings_, s.quarantines);
    s.back_at = now_.mono + wait;
    s.back_at_wall = WallTime(now_.wall.raw() + wait.count());
  });
}

// Tried again: one more failure and it is back at once, and for longer.
void Scheduler::end_quarantines() {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (s.quarantine != WorkerState::Quarantine::kFailures || now_.mono < s.back_at) continue;
    record(WorkerJudged{s.id, WorkerJudged::Verdict::kReleased, 0, {}, {}, now_.wall});
    wake(w);
  }
}

// The scheduler's part that tells a broken task or method from a broken host (failures.h): whose
// failure it counts as, where it is tried next, and when its runs are parked.

FaultSubject Scheduler::task_subject(RunId run) const {
  return {FaultSubject::Kind::kTask, plan_.runs[run.raw()].task};
}

FaultSubject Scheduler::method_subject(RunId run) const {
  return {FaultSubject::Kind::kMethod, plan_.runs[run.raw()].method};
}

bool Scheduler::is_shut(RunId run) const {
  if (waits_for_start(run)) return true;
  return faults_.is_parked(task_subject(run)) || faults_.is_parked(method_subject(run));
}

// Its last attempt ended as if its program could not start, of a method that nobody saw at work: no
// other attempt is drawn, for this one may yet turn out to be its failure.
bool Scheduler::waits_for_start(RunId run) const {
  const auto it = unstarted_.find(run);
  return it != unstarted_.end() && it->second.raw() == attempts_made_[run.raw()];
}

// What a result says of its task and its method: failures that are theirs, and that they work.
void Scheduler::judge_fault(const AttemptId& id, const wire::ResultMessage& r, WorkerIndex from) {
  if (r.termination == Termination::kOperatorCancel) return;
  if (r.fault == Fault::kTask) return fault_failed(task_subject(id.run), id, r, from);
  if (r.fault == Fault::kAgent) {
    fault_worked(task_subject(id.run), id, from);  // its setup was done
    if (r.facts.agent_exit && started_methods_.contains(plan_.runs[id.run.raw()].method)) return;
    return fault_failed(method_subject(id.run), id, r, from);
  }
  if (r.termination == Termination::kInfrastructure && !r.overload) return;  // says nothing
  fault_worked(task_subject(id.run), id, from);
  fault_worked(method_subject(id.run), id, from);
}

void Scheduler::fault_failed(const FaultSubject& subject, const AttemptId& id,
                             const wire::ResultMessage& r, WorkerIndex from) {
  record(FaultFact{subject, FaultFact::Verdict::kFailed, id, roster_.at(from).id, r.cause,
                   r.rationale, now_.wall, r.facts.agent_exit, r.facts.no_model});
  park_if_at_fault(subject);
}

// A row is rare, so this is mostly a look.  A task that failed on one host alone and works on
// another says something of that host; an agent may fail as it likes, and says nothing of any.
void Scheduler::fault_worked(const FaultSubject& subject, const AttemptId& id, WorkerIndex from) {
  if (!faults_.has_row(subject)) return;
  const WorkerId& worker = roster_.at(from).id;
  const std::optional<FaultBook::Alone> alone = faults_.failed_alone(subject, worker);
  const FaultFact fact{subject, FaultFact::Verdict::kWorked, id, worker, "", "", now_.wall};
  record(fact);
  release_shut(subject);
  queue_.wake_workers(capability::kAll);  // who waited for another worker need not
  if (!alone || subject.kind != FaultSubject::Kind::kTask) return;
  const WorkerIndex w = roster_.index_of(alone->worker);
  for (std::uint32_t i = 0; i < alone->failures; ++i) count_host_failure(w);
}

// Somebody who takes new work, could run it and has not failed at it.
bool Scheduler::another_could(std::uint64_t needs,
                              const std::function<bool(const WorkerId&)>& failed) const {
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (s.takes_new() && 0 < s.slots && (needs & ~s.has) == 0 && !failed(s.id)) return true;
  }
  return false;
}

void Scheduler::park_if_at_fault(const FaultSubject& subject) {
  if (faults_.is_parked(subject) || !faults_.is_due(subject)) return;
  FaultFact fact = *faults_.last(subject);
  // A model is no task's: what fails for want of it fails everywhere, also where it had worked.
  if (subject.kind == FaultSubject::Kind::kMethod && !fact.no_model) {
    // It may lack something in one task's image alone: those runs end as they are registered to.
    if (started_methods_.contains(static_cast<std::uint16_t>(subject.index))) return;
    const std::size_t tasks =
        faults_.distinct(subject, [&](RunId run) { return plan_.runs[run.raw()].task; });
    if (tasks < std::min<std::size_t>(2, plan_.tasks.size())) return;
  }
  if (faults_.workers(subject).size() < 2 &&
      another_could(plan_.needs_of(fact.attempt.run),
                    [&](const WorkerId& w) { return faults_.failed_at(subject, w); }))
    return;
  fact.verdict = FaultFact::Verdict::kParked;
  fact.at = now_.wall;
  record(fact);
  out_.push_back(Alert{describe_fault(subject), true, fact.attempt.run});
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r)
    if (task_subject(RunId(r)) == subject || method_subject(RunId(r)) == subject) shut(RunId(r));
}

std::string Scheduler::describe_fault(const FaultSubject& subject) const {
  return std::string(subject.kind == FaultSubject::Kind::kTask ? "its task" : "its method") +
         " is parked: it " + faults_.describe(subject);
}

std::vector<ParkedFault> Scheduler::parked_faults() const {
  std::vector<ParkedFault> out;
  for (const FaultSubject& subject : faults_.parked())
    out.push_back({faults_.last(subject)->attempt.run, subject.kind, describe_fault(subject)});
  return out;
}

// Out of the line, if it is in it.  What is under way follows when it has ended.  Who was parked
// for want of money waits for this now: more money alone starts it no more, and no row says that it
// is what it waits for.
void Scheduler::shut(RunId run) {
  RunPhase& phase = phases_[run.raw()];
  const bool for_money = phase == RunPhase::kParked && !shut_.contains(run);
  if (phase == RunPhase::kQueued) {
    queue_.remove(run);
  } else if (phase == RunPhase::kBackoff) {
    due_.erase({backoff_.at(run).until, run});
    backoff_.erase(run);
  } else if (!for_money) {
    return;
  }
  if (parked_rows_[run.raw()]) record(RunUnparked{run});
  if (!for_money) ++parked_;
  phase = RunPhase::kParked;
  shut_.insert(run);
}

// It comes up (again), unless it is parked.
void Scheduler::queue_or_shut(RunId run) {
  phases_[run.raw()] = RunPhase::kQueued;
  queue_.put_back(run);
  if (is_shut(run)) shut(run);
}

void Scheduler::release_shut(const FaultSubject& subject) {
  std::vector<RunId> released;
  for (const RunId run : shut_)
    if ((task_subject(run) == subject || method_subject(run) == subject) && !is_shut(run))
      released.push_back(run);
  for (const RunId run : released) {
    shut_.erase(run);
    --parked_;
    in_line(run);
  }
}

// Where it failed last it is not tried again while another worker could do better.
bool Scheduler::waits_for_another(RunId run) const {
  const FaultSubject task = task_subject(run), method = method_subject(run);
  const bool of_task = faults_.is_due(task), of_method = faults_.is_due(method);
  if (!of_task && !of_method) return false;
  return another_could(plan_.needs_of(run), [&](const WorkerId& w) {
    return (of_task && faults_.failed_at(task, w)) || (of_method && faults_.failed_at(method, w));
  });
}

// Who could do better may have gone meanwhile.
void Scheduler::look_at_faults() {
  const std::vector<FaultSubject> due = faults_.due();
  for (const FaultSubject& subject : due) park_if_at_fault(subject);
  if (!due.empty()) queue_.wake_workers(capability::kAll);
}
}  // namespace proctor
