#pragma once
// Scheduler: one campaign's decisions.  Pure: an event and a time go in, commands come out; it owns
// no socket, file, timer, clock or thread, and calls nobody back.  Order of effects and states:
// docs/architecture.md.  Money follows attempts, results follow runs:
//   - at most one live attempt per run; a new one only after the old one is lost, voided,
//     cancelled or failed for reasons of infrastructure;
//   - an attempt is assigned only after its reservation is granted and that grant is durable;
//   - a run's outcome is set once, by a result that is durable before it is acknowledged;
//   - nothing is released while something may still be spending: a lost attempt is settled at its
//     ceiling, and only an attempt that never started is voided.
// Same state + same (time, event) => same commands.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/events.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/rate_lease.h"
#include "coordinator/core/roster.h"
#include "coordinator/core/run_queue.h"

namespace proctor {
struct Time {
  Instant mono;
  WallTime wall;
};

struct SchedulerSettings {
  Millis suspect_after = limits::kSuspectAfter;
  Millis lease = limits::kLease;
  Millis reassign_after = limits::kSyncInterval * 2;  // an Assign nobody mentions is sent again
  Millis tick{1'000};
  std::uint32_t infrastructure_retries = 3;  // new attempts of a run for that reason
  Retries retries;                           // and how soon; registered before the first run
  CostModel cost_model;
  BudgetWatch watch;             // registered before the first run
  Rates rates;                   // likewise
  std::string campaign{};        // its id, in what people approve
  std::uint64_t stop_after = 0;  // SafetyBook's two rules (R185)
  std::set<std::string> critical{};
  bool stays_at_gate = true;  // else it ends where only a person can open the next stage
};

class Scheduler {
 public:
  Scheduler(PlanView plan, SchedulerSettings settings, Epoch epoch);
  Scheduler(const Scheduler&) = delete;  // the queue refers to the plan inside
  Scheduler& operator=(const Scheduler&) = delete;

  // What an earlier life left in the journal, before the first event.  Attempts in ascending order.
  void restore_attempt(const RestoredAttempt& attempt);
  // A fact that this life would apply likewise: an outcome, a settlement, a review, what was told
  // about money, a run that is removed (after the others), or a parking, which stands: its run is
  // asked for once more.
  template <class Fact>
  void restore_fact(const Fact& fact) {
    PROCTOR_ASSERT(!started_);
    apply(fact);
  }
  // What the scheduler itself noted (kSchedulerNotes), in order: after what has ended, before the
  // attempts.  kCorrupt: it is none of its notes.
  Status restore_note(const Note& note);
  // All of the above, in their order, from what a journal holds.  kCorrupt: it is of another plan.
  // The caps of the plan are those that hold; `removed` follows it.
  Status restore(const RestoredState& state);
  // The commands that finish what the earlier life began; then the first tick.
  std::vector<Command> start(Time now);

  // The only way in.
  std::vector<Command> on(const Event& event, Time now);

  struct Counts {
    // `queued` counts those in back-off too.
    std::uint64_t queued = 0, active = 0, parked = 0, removed = 0, cancelled = 0;
    std::uint64_t in_backoff = 0, held = 0;
    std::uint64_t faulty = 0;              // those of `parked` whose task or method is
    std::array<std::uint64_t, 4> ended{};  // by RunOutcome
    // Those of `ended` whose task was taken out afterwards: they are in no rate.
    std::array<std::uint64_t, 4> ended_removed{};
    std::uint64_t ended_total() const { return ended[0] + ended[1] + ended[2] + ended[3]; }
  };
  Counts counts() const;
  RunPhase phase(RunId run) const { return phases_[run.raw()]; }
  const Roster& roster() const { return roster_; }
  const PlanView& plan() const { return plan_; }
  const std::vector<ScopeBalance>& balances() const { return balances_; }
  // By envelope: what attempts under way have used of what is reserved there, by the last word of
  // their workers.  Never more than is reserved; tells, and decides nothing.
  const std::vector<MicroUsd>& metered() const { return metered_; }
  // What was told about money, in this life and earlier ones, in order.
  const std::vector<BudgetAlert>& alerts() const { return alerts_.told(); }
  const std::vector<RunDominates>& dominant() const { return dominant_; }
  bool draining() const { return mode_ != Mode::kRun; }
  bool paused() const { return paused_; }
  std::string paused_why() const { return safety_.why(); }  // empty: a person did
  bool suspended() const { return suspended_; }             // and what runs stands still
  // Is it known, or is there room for one more name?
  bool takes_name(const WorkerId& worker) const;
  // May this worker still bring evidence of the attempt?  Its grant names it, and no result of the
  // attempt is recorded or being recorded.
  bool awaits(const WorkerId& worker, const AttemptId& attempt) const;
  // When it was granted; 0: it is no live attempt, or that is not known.
  WallTime granted_at(const AttemptId& attempt) const;
  const SchedulerSettings& settings() const { return settings_; }
  // Why the run is where it is, and the sentence of it.
  Explanation why(RunId run) const;
  std::string explain(RunId run) const { return why(run).text; }
  // "3 runs wait for a worker with Docker", when nobody who is here can run them; else empty.
  std::string waiting_for_workers() const;
  // Attempts that are out, the first `most` of them, and where; no worker: it is on its way.
  struct UnderWay {
    RunId run;
    WorkerId worker;
  };
  std::vector<UnderWay> under_way(std::size_t most) const;
  // Until when a worker stands as it does; nothing: until somebody acts, or nobody knows.
  std::optional<WallTime> stands_until(WorkerIndex w) const;
  // The next stage that is not open yet; nothing: all are.
  std::optional<GateView> gate() const;
  const GateBook& gates() const { return gates_; }
  // What the stages before it have come to, as it stands; its entry criteria are answered by that.
  StageCheck check_stage(std::uint16_t stage) const;
  StageFacts facts_of(std::uint16_t stage) const;
  // Which tasks and methods fail before any work begins, and which of them are parked for it.
  const FaultBook& faults() const { return faults_; }
  // Parked because its task or method is, and for no envelope.
  bool is_faulty(RunId run) const { return shut_.contains(run); }
  // What is parked because it is broken: a run of it, and the sentence.
  std::vector<ParkedFault> parked_faults() const;
  enum class Reopens : std::uint8_t { kYes, kNotInvalid, kUsedUp, kOfTheAgent };
  Reopens reopens(RunId run) const;  // by a requeue of invalid runs
  // After the end: what makes the next life run these invalid runs again; none: `answer` says why.
  std::vector<JournalWrite> reopen_after_the_end(const OperatorAct& act, OperatorAnswer& answer);
  void check();
  // All that facts alone decide, by name, in words: two schedulers to which the same facts have
  // happened say the same, also if one of them was restored from those facts.
  std::map<std::string, std::string> durable() const;

 private:
  using State = LiveAttempt::State;
  using Attempt = LiveAttempt;
  enum class Mode { kRun, kDrain, kCancel };
  // How a run that is invalid ended: is that one of its counted failures, and whose doing was it?
  enum class Invalid : std::uint8_t { kUncounted, kCounted, kOverloaded, kOfTheAgent };
  enum class Step : std::uint8_t {
    kAsk,
    kAssign,
    kAckAndSettle,
    kSettleLost,
    kForget,
    kAckLate,
    kObey,      // what an operator asked is durable: tell workers and ledger
    kReviewed,  // a review is durable: tell the ledger
  };
  enum class Loss : std::uint8_t { kDied, kSilent, kGone, kUnclaimed, kKicked };
  struct After {  // what a durable write allows
    Step step;
    AttemptId attempt;
    std::uint32_t seq = 0;
    WorkerIndex worker = 0;
  };

  void handle(const WorkerSynced& e);
  void handle(const WorkerLeft& e);
  void handle(const WorkerDisconnected& e);
  void handle(const ProgressReceived& e);
  void handle(const EvidenceHeard& e);
  void handle(const ResultReceived& e);
  void handle(const Persisted& e);
  void handle(const Reserved& e);
  void handle(const Settled& e);
  void handle(const Voided& e);
  void handle(const ElsewhereHeld& e);
  void handle(const TimerFired& e);
  void handle(const DrainAsked& e);
  void handle(const CancelAsked& e);
  void handle(const OperatorAsked& e);
  // Each completes the fact, by the runs that it concerns, and applies it.
  using Verdict = OperatorAnswer::Verdict;
  OperatorAnswer decide(OperatorFact& fact);
  OperatorAnswer pause(const OperatorFact& fact);
  OperatorAnswer drain(const OperatorFact& fact);
  OperatorAnswer cancel(OperatorFact& fact);
  OperatorAnswer requeue(OperatorFact& fact);
  OperatorAnswer reopen(OperatorFact& fact);
  OperatorAnswer approve(OperatorFact& fact);
  OperatorAnswer put_in_quarantine(const OperatorFact& fact);
  OperatorAnswer release(const OperatorFact& fact);
  OperatorAnswer kick(OperatorFact& fact);
  OperatorAnswer raise(const OperatorAct& act);
  OperatorAnswer review(const OperatorAct& act);
  OperatorAnswer approve_stage(OperatorFact& fact);
  OperatorAnswer waive(OperatorFact& fact);
  OperatorAnswer close_stage(OperatorFact& fact);
  bool is_over_before_gate() const;
  void look_at_gates();
  Explanation why_behind_gate() const;
  void raise_one(ScopeId scope, const OperatorAct& act, const std::string& reason);
  void unpark(const std::vector<ScopeId>& scopes, bool fits);
  void park(RunId run, ScopeId scope, MicroUsd short_by);
  void unpark(RunId run);
  void obey(std::uint32_t raise);
  wire::SyncReply desired(WorkerIndex w) const;
  // What a fact changes, in this life and in the next ones (scheduler_facts.cc).
  void apply(const OperatorFact& fact);
  void apply(const LossJudged& fact);
  void apply(const FaultFact& fact);
  void apply(const WorkerJudged& fact);
  void apply(const RunEscalated& fact);
  void apply(const SafetySeen& fact);
  void apply(const StageChecked& fact);
  void apply(const StageOpened& fact);
  void apply(const AttemptIntent& fact);
  void apply(const AttemptGranted& fact);
  void apply(const AttemptDenied& fact);
  void apply(const AttemptLost& fact);
  void apply(const AttemptResult& fact);
  void apply(const AttemptSettled& fact);
  void apply(const RunEnded& fact);
  void apply(const RunRemoved& fact);
  void apply(const RunReviewed& fact);
  void apply(const BudgetRaised& fact);
  void apply(const BudgetAlert& fact);
  void apply(const RunDominates& fact);
  void apply(const RunParked& fact);
  void apply(const RunUnparked& fact);
  // Applied and written: as a row where the journal has one for it, else as a note.
  template <class Fact>
  void record(Fact fact, std::optional<After> after = std::nullopt) {
    apply(fact);
    if constexpr (requires { note_of(fact); })
      write(note_of(fact), after);
    else
      write(std::move(fact), after);
  }
  void count_made(const AttemptId& attempt);
  void spend(RunId run, MicroUsd amount);
  void give_back(const Attempt& attempt);
  void leave_line(RunId run);
  void cancel_run(RunId run);
  bool is_out_of_reach(const Attempt& attempt) const;
  void line_up(RunId run);
  void forgive(const AttemptId& last);
  std::string durable_run(RunId run) const;
  void put_aside(const AttemptId& decided);
  void take_up(const RestoredAttempt& row);
  void restore_waits();
  void hold_used_up();

  void dispatch();
  RunQueue::Answer judge(RunId run) const;
  void begin_attempt(RunId run);
  bool park_if_known_short(RunId run);
  void granted(Attempt& attempt);
  void denied(Attempt& attempt, const ReserveAnswer& answer);
  std::string why_not_now(RunId run) const;
  void assign_or_void(Attempt& attempt);
  void void_attempt(Attempt& attempt, const std::string& reason);
  void lose(Attempt& attempt, Loss why, const std::string& reason);
  void finish(Attempt& attempt, const wire::ResultMessage& result, WorkerIndex from);
  void close(const AttemptId& id);
  // After a failure that is not the agent's, unless it was forgiven.
  void count_failure(const AttemptId& failed, RetryClass of);
  std::uint32_t failures_of(RunId run, RetryClass of) const;
  std::uint32_t retries_of(RetryClass of) const;
  bool died_with_worker(const Attempt& a, const wire::ResultMessage& r, WorkerIndex from) const;
  void hold_against(const AttemptId& id, const WorkerId& worker, BootId boot);
  std::string convict(const AttemptId& id);
  bool blame(const Attempt& attempt, Loss why);
  bool outlived(Attempt& attempt, WorkerIndex w);
  void again_or_end(Attempt& attempt, bool convicted);
  void wait_before_next(Attempt& attempt, RetryClass of);
  void hold_for_decision(RunId run, const std::string& reason);
  // Whose failure it is, where it was not the host's.
  FaultSubject task_subject(RunId run) const;
  FaultSubject method_subject(RunId run) const;
  void watch_safety(const AttemptId& attempt, std::string_view tags);
  void judge_fault(const AttemptId& id, const wire::ResultMessage& result, WorkerIndex from);
  void fault_failed(const FaultSubject& subject, const AttemptId& id,
                    const wire::ResultMessage& result, WorkerIndex from);
  void fault_worked(const FaultSubject& subject, const AttemptId& id, WorkerIndex from);
  void park_if_at_fault(const FaultSubject& subject);
  std::string describe_fault(const FaultSubject& subject) const;
  bool another_could(std::uint64_t needs, const std::function<bool(const WorkerId&)>& failed) const;
  bool waits_for_another(RunId run) const;
  bool is_shut(RunId run) const;
  void shut(RunId run);
  void queue_or_shut(RunId run);
  void release_shut(const FaultSubject& subject);
  void forgive_fault(RunId run);
  void look_at_faults();
  bool waits_for_start(RunId run) const;
  void judge_worker(WorkerIndex w, const wire::ResultMessage& result);
  void count_host_failure(WorkerIndex w);
  void quarantine(WorkerIndex w);
  void stand_back(WorkerIndex w);
  void end_quarantines();
  void end_waits();
  void in_line(RunId run);
  AttemptNo last_judged(RunId run) const;
  void withdraw_blame(const AttemptId& attempt, const WorkerId& worker, BootId boot);
  // Who gets which worker.
  std::optional<WorkerIndex> worker_for(RunId run) const;
  std::uint64_t needs_of(RunId run) const;
  void seat(Attempt& attempt, WorkerIndex w);
  void remember_owner(RunId run, WorkerIndex w);
  // The grant of this attempt is known to name somebody else.
  bool is_anothers(const AttemptId& attempt, WorkerIndex w) const;
  // Lost at this worker, and its result is still wanted.
  bool is_late_of(WorkerIndex w, const AttemptId& id) const;
  bool runs_nothing(RunId run) const;
  void refuse_result(const ResultReceived& e, const std::string& why);
  void wake(WorkerIndex w);
  void keep_for_suspects();
  Millis lease_of(WorkerIndex w) const;
  std::string told_standing(WorkerIndex w) const;
  std::optional<WallTime> given_up_at(WorkerIndex w) const;
  Explanation why_active(RunId run) const;
  Explanation why_waiting(RunId run) const;
  Explanation why_shut(RunId run) const;
  std::string told_fault(RunId run) const;
  Explanation why_no_worker(RunId run) const;
  std::uint64_t before_in_line(RunId run) const;
  void money_back(ScopeId scope);
  void settled(Attempt& attempt, const SettleAnswer& answer);
  void tell_spent(ScopeId scope);
  void share_rates(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply);
  void watch_run(Attempt& attempt, const wire::RunningAttempt& said);
  bool take_usage(Attempt& attempt, const Usage& said);
  void count_metered(Attempt& attempt);
  void doubt_sender(WorkerIndex w, const AttemptId& id);
  bool is_unheard_of(const AttemptId& id) const;
  void tell_unheard_of(WorkerIndex w, const AttemptId& id);
  void release_slot(Attempt& attempt);
  void cancel_running(bool all);  // else attempts of cancelled runs alone
  enum class Life { kSame, kNew };
  void reconcile(WorkerIndex w, Life life, const wire::Sync& sync, wire::SyncReply& reply);
  void reconcile_missing(WorkerIndex w, Life life, const wire::Sync& sync,
                         const std::set<AttemptId>& known);
  void reconcile_unacked(WorkerIndex w, const wire::Sync& sync, wire::SyncReply& reply);
  void take_back(WorkerIndex w, const wire::Sync& sync);
  std::size_t worker_gone(WorkerIndex w, Loss why, const std::string& text);  // lost attempts
  void suspect(WorkerIndex w, const std::string& why);
  std::vector<bool> forgettable() const;
  void forget_absent();
  void note(std::string kind, std::optional<AttemptId> attempt, const std::string& text);
  void write(JournalWrite w, std::optional<After> after = std::nullopt);
  void finish_step();
  void perform(const After& after);
  Attempt* live(const AttemptId& id);
  bool assigned_to(const Attempt& a, WorkerIndex w) const;
  void list_at(WorkerIndex w, RunId run);
  std::vector<AttemptId> attempts_at(WorkerIndex w) const;

  PlanView plan_;
  SchedulerSettings settings_;
  Epoch epoch_;
  RunQueue queue_;
  Roster roster_;
  std::vector<MicroUsd> metered_;
  std::vector<ScopeBalance> balances_;  // our own view; the ledger's answers are final
  std::vector<RunPhase> phases_;
  std::vector<std::uint16_t> attempts_made_, failures_;  // by run; failures of infrastructure
  // By run, also when it has ended: whom its latest grant names, + 1; 0: nobody remembered.
  std::vector<std::uint16_t> owners_;
  struct InvalidEnd {
    AttemptNo by;  // the attempt that ended it
    Invalid how = Invalid::kCounted;
  };
  std::map<RunId, InvalidEnd> invalid_;
  std::set<AttemptId> set_aside_;  // decided once, and put aside by an operator
  // By run: it is parked for money; a run parked by an earlier life is in line all the same.
  std::vector<bool> parked_rows_;
  std::map<RunId, std::uint32_t> overloads_;
  std::map<RunId, AttemptNo> forgiven_;  // failures up to this attempt do not count
  std::set<AttemptId> excused_;          // their loss was an operator's doing, and is no failure
  PoisonBook poison_;
  FaultBook faults_;
  SafetyBook safety_;
  GateBook gates_;
  std::optional<StageCheck> gate_check_;  // of the next gate, once the stages before it are over
  bool gates_stale_ = true;               // something was written since
  std::set<RunId> shut_;  // parked because its task or method is, and for no envelope
  std::set<std::uint16_t> started_methods_;             // an agent of theirs was at work once
  std::map<RunId, AttemptNo> unstarted_, unavailable_;  // the last before any was at work; of all
  struct Backoff {
    Instant until{};
    WallTime until_wall{};
    RetryClass of = RetryClass::kInfrastructure;
  };
  std::map<RunId, Backoff> backoff_;
  std::set<std::pair<Instant, RunId>> due_;
  std::optional<WorkerIndex> kept_;  // until it is empty, for a suspect that waits
  std::size_t unchecked_ = 0;        // steps since check(), times 16
  std::map<RunId, Attempt> live_;
  // By worker: the live attempts that hold a slot there or were granted to it by an earlier life,
  // and perhaps some that no longer are.  What a worker says or loses must not cost a look at all.
  std::vector<std::set<RunId>> at_worker_;
  std::set<RunId> unclaimed_;  // restored as granted: no worker may have said yet that it has it
  std::map<RunId, AskId> denied_;  // waiting with an attempt number already used for an ask
  // Ended without a result, with whom the grant named: one may still come, from that worker.
  std::map<AttemptId, WorkerId> lost_;
  std::set<AttemptId> late_writing_;  // one came, and is being made durable
  std::map<ScopeId, std::pair<MicroUsd, MicroUsd>> known_short_;  // spent, smallest ask denied
  std::map<ScopeId, MicroUsd> refused_;  // the ask denied while money was out there
  BudgetAlerts alerts_;
  RateLeases rates_;
  std::vector<RunDominates> dominant_;
  std::set<AttemptId> dominant_ids_;
  // Stated what is another's, or has attempts that were never granted: each is told once.
  std::set<WorkerIndex> doubted_, unheard_of_;
  std::array<std::uint64_t, 4> ended_{};
  std::uint64_t parked_ = 0, rows_parked_ = 0, removed_ = 0, cancelled_ = 0, held_ = 0;
  // Runs whose task was taken out when they had begun or ended, and what those that ended came to.
  std::set<RunId> removed_later_;
  std::array<std::uint64_t, 4> ended_removed_{};
  Mode mode_ = Mode::kRun;
  bool paused_ = false, suspended_ = false;
  std::uint32_t caps_ = 0;  // counts raises
  struct Unheard {          // a cap that is not durable yet
    std::uint32_t nth = 0;
    ScopeId scope;
    MicroUsd cap;
  };
  std::deque<Unheard> unheard_;
  std::vector<ScopeSpec> heard_caps_;  // by the ledger; empty: those of the beginning
  std::vector<ScopeSpec> raised_;      // for the ledger, once they are durable
  std::uint32_t reviews_ = 0;          // booked so far
  struct Reviewed {                    // one that is not durable yet
    RunId run;
    MicroUsd charged;
  };
  std::deque<Reviewed> reviewing_;
  std::vector<MicroUsd> reviewed_;  // for the ledger, once they are durable; by scope, or empty
  bool started_ = false, end_told_ = false, suspension_told_ = false;  // what was heard last
  Instant forget_at_{};
  std::optional<std::pair<WorkerId, WallTime>> last_gone_;  // of those that were forgotten
  Time now_;
  WallTime started_at_;

  // gathered during one step, sent at its end
  std::vector<JournalWrite> writes_;
  std::vector<After> afters_;
  std::vector<Answer> answers_;
  struct Awaiting {
    std::uint64_t seq;
    std::vector<After> afters;
    std::vector<Answer> answers;
  };
  std::deque<Awaiting> awaiting_;
  std::uint64_t next_seq_ = 1;
  Reserve reserve_;
  Settle settle_;
  VoidReservations voids_;
  Forget forget_;
  std::map<WorkerIndex, std::vector<AssignRuns::Run>> assigns_;
  std::map<WorkerIndex, std::vector<AttemptId>> acks_;
  std::map<WorkerIndex, std::vector<AttemptId>> cancels_;
  std::vector<Command> out_;
};
}  // namespace proctor
