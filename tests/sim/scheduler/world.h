#pragma once
// A simulated world around one Scheduler: workers with spools, a network that loses, repeats,
// delays and reorders, a journal that keeps a prefix of what was asked, a ledger whose answers may
// be repeated, and coordinators and workers that die.  One seed decides everything.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/scheduler.h"
#include "tests/support/memory_journal.h"

namespace proctor::sim {

struct Ranges {  // percent per message or per second
  unsigned lose = 5, repeat = 5, worker_dies = 2, leaves = 2, coordinator_dies = 1, partition = 2;
  unsigned infrastructure = 3;  // of results
  unsigned misfits = 3;         // of results: invalid by the task's own fault, on every host alike
  unsigned ledger_slow = 3;     // of batches: Redis answers after seconds
  unsigned dies_on_answer = 1;  // of batches: the ledger acted, the coordinator died at once
  unsigned gone_for_good = 10;  // of worker deaths; never the first worker
  bool drain_once = false;
  unsigned outlives = 30;  // of attempts whose worker dies: its next life goes on with them
  bool books = false;      // killed workers know what they were running (worker/shell/meter_book.h)
  unsigned acts = 6;       // of an operator, per second
  unsigned overload = 3;   // of results
  unsigned torn = 5;       // of worker deaths: its disk lost a result that was not acknowledged
  unsigned clock_jumps = 2;
  unsigned closed = 50;               // of ends of a worker and of its links: the socket tells
  std::uint64_t cut_off_ms = 45'000;  // at most: sometimes longer than the lease
};

// What the seeds exercised; every count must be positive over all seeds.
struct Exercised {
  std::uint64_t lost = 0, repeated = 0, worker_deaths = 0, coordinator_deaths = 0, partitions = 0;
  std::uint64_t denials = 0, parked = 0, voided = 0, attempts_lost = 0, late_results = 0;
  std::uint64_t infrastructure = 0, adopted = 0, reassigned = 0, cancelled_on_sync = 0, resent = 0;
  std::uint64_t leaves = 0, declined = 0, given_back = 0;
  std::uint64_t drains = 0, ledger_repeats = 0, runs = 0, slow_answers = 0;
  std::uint64_t answers_lost = 0, gone_for_good = 0, ended_by_limit = 0;
  std::uint64_t across = 0, short_across = 0, alerts = 0, dominant = 0;
  // Ordered to stop by the dominance rule; stopped so; alerts that a later life knew of, and those
  // that it added to them; attempts that a killed worker reported.
  std::uint64_t stop_orders = 0, stopped = 0, alerts_known = 0, alerts_added = 0, reported_dead = 0;
  std::uint64_t pauses = 0, suspended = 0, cancels = 0, requeues = 0, approvals = 0, kicks = 0;
  std::uint64_t quarantines = 0, own_quarantines = 0, worker_drains = 0, raises = 0, unchanged = 0;
  std::uint64_t overloads = 0, waited = 0, escalated = 0, poison_kills = 0, convicted = 0;
  std::uint64_t blamed = 0, withdrawn = 0, excused = 0, alone = 0, disconnected = 0;
  std::uint64_t torn = 0, clock_jumps = 0, outlived = 0, misfits = 0, reopened = 0;
  std::uint64_t shared_denials = 0, denied_for_now = 0, told_elsewhere = 0;
  std::uint64_t compared = 0;  // with what a resume would make of the facts so far
  // Failures that are a task's, a method's or a deaf host's; what was parked for it, and let go.
  std::uint64_t stages_opened = 0, stages_approved = 0, stages_closed = 0, waived = 0;
  std::uint64_t broken = 0, mute = 0, deaf = 0, task_parked = 0, method_parked = 0, let_go = 0;
};

class World {
 public:
  // kStaged: its runs are of three stages, and each waits for the one before.
  enum class Stages : std::uint8_t { kOne, kStaged };
  World(std::uint64_t seed, Exercised& exercised, Stages stages = Stages::kOne);
  // Runs the campaign to its end; false (with `why()`) when it does not end in time.
  bool run();
  // Of two campaigns that share an envelope; why() is the first one's.
  static bool run_both(World& one, World& other);
  const std::string& why() const { return why_; }
  std::uint64_t digest() const { return digest_; }

 private:
  struct SimWorker {
    WorkerId id;
    BootId boot;
    std::vector<BootId> lives;  // earlier ones whose books are whole
    std::uint32_t slots = 0;
    std::uint32_t life = 0;  // timers of an earlier life do nothing
    bool alive = true;
    Instant cut_off_until;
    Epoch epoch_seen;
    std::map<AttemptId, Usage> running;
    std::map<AttemptId, Usage> left;  // by an earlier life, for the next one to go on with
    std::set<AttemptId> done;         // in this life
    std::map<AttemptId, wire::ResultMessage> spool;
    bool leaving = false;                         // of its own accord, or by a signal
    std::map<AttemptId, std::uint64_t> declined;  // with the ticket of the Sync that said so
    std::uint64_t ticket = 0, leave_said = 0;     // of its last Sync; of the first without slots
  };

  void begin();
  bool goes_on() const { return !agenda_.empty() && why_.empty() && !(ended_ && complete_); }
  void step();

  // with another campaign
  void share(World& other, MicroUsd cap);
  Elsewhere elsewhere() const;
  void tend();
  MicroUsd held_for_certain() const;
  void check_shared() const;

  // time
  void at(Millis delay, std::function<void()> what);
  std::uint64_t below(std::uint64_t n) { return rng_() % n; }
  bool chance(unsigned percent) { return faults_on_ && below(100) < percent; }
  Millis some(std::uint64_t ms) { return Millis(static_cast<std::int64_t>(below(ms) + 1)); }
  // As the coordinator's clocks have it: the steady one begins anywhere with each life, the wall
  // clock jumps.
  Time time() const {
    return {now_ + steady_offset_, WallTime((now_ + wall_offset_).time_since_epoch().count())};
  }

  // coordinator
  void make_plan();
  void add_across(std::uint64_t tasks);
  void add_stages();
  void approve_next_stage();
  void act_on_stage();
  void check_gate(const Note& note);
  void check_begun(RunId run) const;
  void boot_coordinator();
  void kill_coordinator();
  void feed(const Event& e);
  void perform(const std::vector<Command>& commands);
  void perform(const Persist& c);
  void perform(const Reserve& c);
  void perform(const Settle& c);
  void perform(const VoidReservations& c);
  void perform(const Forget& c);
  void perform(const AssignRuns& c);
  void perform(const AckResults& c);
  void perform(const CancelAttempts& c);
  void perform(const ReplySync& c);
  void perform(const ArmTimer& c);
  void perform(const Alert&) {}
  void perform(const Answer& c);
  void perform(const RaiseCaps& c);
  void perform(const CampaignEnded& c);
  void commit(std::uint64_t life, const Persist& c);
  void ledger_turn(std::function<Event()> apply);

  // network and workers
  void to_worker(const WorkerId& id, std::function<void(SimWorker&)> what);
  void to_coordinator(SimWorker& w, Event e);
  void sync(SimWorker& w);
  void start_attempt(SimWorker& w, Epoch epoch, AttemptId id);
  void work_on(SimWorker& w, AttemptId id);
  void finish_attempt(SimWorker& w, AttemptId id);
  void stop_agent(SimWorker& w, AttemptId id);
  void end_attempt(SimWorker& w, AttemptId id, wire::ResultMessage r);
  bool must_stop(const wire::RunningAttempt& r) const;
  void send_result(SimWorker& w, const wire::ResultMessage& r);
  void kill_worker(SimWorker& w);
  void leave(SimWorker& w);
  static void stay(SimWorker& w);  // its next life does not leave
  void faults();
  void socket_closed(const SimWorker& w);
  std::string stuck() const;

  // an operator
  void act(OperatorAct a);
  void act(OperatorActKind kind, std::vector<RunId> runs, const WorkerId& worker);
  void some_act();
  void heal();
  void check_act(const Note& note);
  void check_loss(const Note& note);
  // Tasks and methods that are broken, and a host that cannot do their setup.
  void draw_faults(std::uint64_t workers);
  bool fails_before_work(const SimWorker& w, AttemptId id, wire::ResultMessage& r);
  std::vector<FaultSubject> subjects_of(RunId run) const;
  bool is_broken(const FaultSubject& subject) const;
  bool is_parked_for_fault(RunId run) const;
  void check_fault(const Note& note);
  void check_fault_rows();
  void waits(RunId run, Millis wait);
  void count_fault(const AttemptResult& w);
  void check_own_quarantine(const Note& note);
  void forgive_faults(const std::vector<RunId>& runs);
  void count_poison_loss(const AttemptId& id);
  void check_assigned(const WorkerId& worker, const AttemptId& id);
  void check_starts(const AttemptIntent& w);

  // oracles
  void check_durable(const JournalWrite& w);
  void check_intent(const AttemptIntent& w);
  void check_settled(const AttemptSettled& w);
  void check_reopened(const AttemptId& id);
  void check_denied(const AttemptId& id);
  void check_envelopes() const;
  void check_note(const Note& w);
  void check_alerts_at_end();
  std::vector<ScopeId> envelopes_of(RunId run) const;
  void check_commands(const Event& e, const std::vector<Command>& commands);
  void check_reply(const wire::Sync& sync, const wire::SyncReply& reply);
  void look_who_is_forgotten();
  void compare_restored();
  void fail(const std::string& what) const;
  void check_end();

  std::mt19937_64 rng_;
  Exercised& seen_;
  Ranges ranges_;
  bool faults_on_ = true;
  Instant now_{};
  Millis steady_offset_{0}, wall_offset_{0};
  struct Action {
    Instant at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Action& o) const { return std::tie(o.at, o.order) < std::tie(at, order); }
  };
  std::priority_queue<Action> agenda_;
  std::uint64_t order_ = 0;
  mutable std::string why_;
  std::uint64_t digest_ = 1469598103934665603ull;

  PlanView plan_;
  SchedulerSettings settings_;
  std::unique_ptr<Scheduler> core_;
  std::uint64_t coordinator_life_ = 0;
  Epoch epoch_;
  bool ended_ = false, complete_ = false;
  std::unique_ptr<Ledger> ledger_;
  World* other_ = nullptr;                   // with which it shares an envelope
  std::optional<Elsewhere> told_elsewhere_;  // none: it is told whatever it is
  Instant ledger_free_at_{}, journal_free_at_{};
  std::map<WorkerId, SimWorker> workers_;

  testing::MemoryJournal journal_;  // what is durable
  testing::MemoryJournal written_;  // what this life was to make durable beside
  std::uint64_t steps_ = 0;
  std::set<WorkerId> known_, forgotten_;  // by this life of the coordinator

  // the durable journal and what it implies, kept independently of the code under test
  struct Trail {
    RestoredAttempt at;
    bool lost = false;
    bool terminal = false;
  };
  std::map<AttemptId, Trail> durable_;
  std::map<RunId, AttemptId> outcome_of_;
  std::map<RunId, RunOutcome> outcome_;
  std::set<RunId> parked_;
  std::map<ScopeId, MicroUsd> spent_;
  RunId last_first_intent_;
  bool strict_order_ = false;
  std::set<RunId> ever_parked_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, RunId> last_of_group_;  // task and method
  // Where the run's money must come from, by the names that were drawn.
  std::map<std::string, ScopeId> scope_named_;
  std::vector<std::string> level_of_task_;
  std::vector<BudgetAlert> alerts_;
  std::size_t alerts_at_boot_ = 0;
  std::set<std::pair<ScopeId, std::uint32_t>> told_;
  std::vector<RunDominates> dominant_;
  std::map<RunId, std::uint32_t> failures_;  // lost, or the host's fault
  // As the ledger sees it: settled, voided, raised, or denied to somebody; and where that stood
  // when it last denied a run.
  std::uint64_t came_back_ = 0;
  std::map<RunId, std::uint64_t> denied_after_;
  bool stopping_ = false;                  // this life was told to start nothing more
  std::map<AttemptId, BootId> begun_in_;   // the life of a worker that began it
  std::map<WorkerId, BootId> boot_heard_;  // of the last Sync that arrived

  // What operators did, as the journal has it, and as it must hold now: what is undone is undone
  // when it is asked, what is done holds when it is durable.
  struct Standing {
    bool paused = false, suspended = false;
    std::set<RunId> cancelled;
    std::set<RunId> closed;   // those of `cancelled` that never begin again
    std::set<WorkerId> shut;  // drained or in quarantine
  };
  Standing durable_standing_, standing_;
  std::set<std::uint64_t> acts_durable_;  // by ticket, which is the time of the act
  std::map<std::uint64_t, OperatorActKind> asked_;
  std::uint64_t ticket_ = 0;
  // By stage and digest, as durable notes have them; and how many gates were opened.
  std::map<std::string, std::set<std::string>> approved_;
  std::set<std::string> held_checks_;
  std::size_t stages_open_ = 0;
  std::set<RunId> touched_;        // in line again by an operator: out of the plan's order
  std::set<RunId> again_at_once_;  // ended, and asked for once more
  std::map<RunId, std::uint32_t> overloads_;
  std::set<AttemptId> excused_;
  std::map<RunId, std::pair<Instant, Millis>> not_before_;
  std::map<RunId, std::multiset<AttemptNo>> blamed_;
  std::set<AttemptId> lone_;
  std::map<AttemptId, WorkerId> assigned_now_;     // by this life
  std::optional<RunId> poison_;                    // kills every worker it runs on
  std::optional<WorkerId> sick_;                   // most of what it does fails
  std::map<AttemptId, std::uint64_t> heard_;       // the life that heard of its sandbox
  std::set<AttemptId> killed_by_, killed_before_;  // in its present life; in one it outlived
  std::set<AttemptId> outlived_;                   // a worker, once
  std::uint32_t poison_losses_ = 0;
  std::set<RunId> convicted_;
  std::optional<std::uint32_t> broken_task_;
  std::optional<std::uint16_t> mute_method_;
  std::optional<WorkerId> deaf_;  // no setup works there while faults are on
  std::set<RunId> unstarted_;     // the last attempt could not start
  std::map<AttemptId, std::pair<Fault, std::string>> fault_of_;  // as its worker said, and where
  struct FaultRow {
    std::vector<std::string> workers;  // of failures since it last worked, in order
    bool parked = false;
  };
  std::map<FaultSubject, FaultRow> fault_rows_;
  std::map<std::string, std::uint64_t> host_failures_;  // by worker
};

}  // namespace proctor::sim
