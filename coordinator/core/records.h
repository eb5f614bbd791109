#pragma once
// Operators' acts, the facts that the coordinator writes down, and what is read back from the
// journal.  Pure data; any thread.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/words.h"
#include "common/contract/cost_model.h"
#include "common/ledger/ledger.h"
#include "common/score/outcome.h"

namespace proctor {
// An operator's act on a running campaign.  The command line says it over the control socket, the
// shell turns names into ids, the scheduler decides, and the journal keeps it as a note
// (OperatorFact) so that the next life of the coordinator stands by it.
//
// Every act but a review, which is booked as often as it is asked for, is idempotent: asked again
// it changes nothing and says so.

enum class OperatorActKind : std::uint8_t {
  kPause,       // start nothing; `now`: what runs is suspended too
  kUnpause,     // and what was suspended goes on
  kDrain,       // of `worker`, or of the campaign: what runs is finished, nothing is started there
  kCancel,      // `runs`: stop them; those that had not ended never start (until requeued)
  kRequeue,     // `runs`: cancelled, parked or waiting for a back-off: in line again, now; or those
                // that ended `invalid`, within the attempts that were registered
  kApprove,     // `runs`: that wait for a person's decision (R107) go on
  kQuarantine,  // `worker` gets nothing new until it is released
  kRelease,     // `worker`: neither drained nor in quarantine any more
  kKick,        // `worker`: is told to leave, its attempts are lost
  kRaise,       // `scope` gets the cap `to` (R163): a declared deviation
  kReview,      // a person's `milli_minutes` on one of `runs` that has ended (R158)
  kApproveStage,  // `stage` may begin, by what the stages before it came to (run_queue.h)
  kWaive,         // `criterion` of `stage` need not hold: a declared deviation
  kCloseStage,    // `runs` of `stage` are cancelled, and none of it begins any more: likewise
};
constexpr auto words(OperatorActKind) {
  using enum OperatorActKind;
  return std::to_array<Word<OperatorActKind>>({{"pause", kPause},
                                               {"unpause", kUnpause},
                                               {"drain", kDrain},
                                               {"cancel", kCancel},
                                               {"requeue", kRequeue},
                                               {"approve", kApprove},
                                               {"quarantine", kQuarantine},
                                               {"release", kRelease},
                                               {"kick", kKick},
                                               {"raise", kRaise},
                                               {"review", kReview},
                                               {"approve_stage", kApproveStage},
                                               {"waive", kWaive},
                                               {"close_stage", kCloseStage}});
}

struct OperatorAct {
  OperatorActKind kind = OperatorActKind::kPause;
  std::vector<RunId> runs{};  // ascending; of kCancel, kRequeue, kApprove, kCloseStage
  std::string selected{};     // the words that named them: "method noop"; for the record
  WorkerId worker{};          // empty: the campaign
  bool now = false;           // of kPause
  bool invalid = false;       // of kRequeue: those of `runs` that ended invalid, and no others
  ScopeId scope{};            // of kRaise
  MicroUsd to{};              // of kRaise
  std::uint64_t milli_minutes = 0;  // of kReview; `reason` is its note
  std::string by{};                 // who, never empty
  std::string reason{};             // may be empty where it need not be said (act_of)
  WallTime at{};
  std::string stage{};      // of kApproveStage, kWaive, kCloseStage
  std::string criterion{};  // kWaive: as in "entry invalid_share 0.05"; its word may do
  // Of kApproveStage: of the check that is meant, or its first digits; the note has it whole.
  std::string digest{};
  std::string mode{};  // a kPause is for this failure mode; empty: a person's pause
};
// What came of an act, in one sentence for whoever asked.
struct OperatorAnswer {
  enum class Verdict : std::uint8_t {
    kDone,       // durable when this is told
    kUnchanged,  // it was so already
    kRefused,    // nothing has changed; `text` says why
  };
  Verdict verdict = Verdict::kDone;
  std::string text;
  bool short_of_money = false;  // of kRefused: an envelope is short
};

// The facts that the coordinator writes down: one struct per fact, past tense.  The journal is the
// ledger of record and the state itself (docs/architecture.md): it keeps the current row of every
// attempt and run plus notes of what is rare, and a campaign resumes from that alone.
//
// Every write is idempotent: the same fact twice leaves the same rows.  A fact that contradicts
// what is stored (an unknown attempt, a second outcome of a run) stops the journal with kCorrupt.

// Facts about the campaign.

struct MetaSet {  // "campaign", "registration", "plan": see kMeta... below
  std::string key;
  std::string value;
};
struct ScopeDefined {
  ScopeId scope;
  std::string name;
  MicroUsd cap;
  std::optional<MicroUsd> raised_from{};  // the cap it had; nothing: it must be new or the same
};
struct EpochBegun {
  Epoch epoch;
  std::string host;
  std::int64_t pid = 0;
  std::string version;
  WallTime at;
};
// Everything rare: worker joined or left, suspects, operator acts, alerts, redis lost and back.
struct Note {
  WallTime at;
  std::string kind;
  std::optional<RunId> run;
  std::optional<AttemptNo> attempt;
  std::string detail;  // JSON text
};

// A declared deviation (R163): kept as a note beside the scope's new cap.
struct BudgetRaised {
  static constexpr const char* kNote = "budget_raised";
  ScopeId scope;
  std::string name;
  MicroUsd from, to;
  std::string reason, by;
  WallTime at;
};
void fields(auto& v, Is<BudgetRaised> auto& r) {
  v("by", r.by);
  v("from", r.from);
  v("name", r.name);
  v("reason", r.reason);
  v("scope", r.scope);
  v("to", r.to);
}

// What is spent in an envelope has reached a registered share of its cap.  A note, written together
// with the settlement that reached it.
struct BudgetAlert {
  static constexpr const char* kNote = "budget_alert";
  ScopeId scope;
  std::string name;
  std::uint32_t percent = 0;
  MicroUsd spent, cap;  // at that time
  WallTime at;
};
void fields(auto& v, Is<BudgetAlert> auto& a) {
  v("cap", a.cap);
  v("name", a.name);
  v("percent", a.percent, {.most = 100});
  v.require(0 < a.percent, "percent", "expected 1 or more");
  v("scope", a.scope);
  v("spent", a.spent);
}

// A run spent a registered share of its money without a milestone (R190).  A note with the attempt.
struct RunDominates {
  static constexpr const char* kNote = "dominance";
  AttemptId attempt;
  MicroUsd cost, ask;  // metered, and reserved for it
  std::uint64_t milestones = 0;
  bool stop = false;  // its agent is stopped
  WallTime at;
};
void fields(auto& v, Is<RunDominates> auto& d) {
  v("ask", d.ask);
  v("cost", d.cost);
  v("milestones", d.milestones);
  v("stop", d.stop);
}

// Facts about one attempt, in the order in which they usually happen.

struct AttemptIntent {  // a denied attempt may ask again under a higher seq
  AttemptId attempt;
  std::uint32_t seq = 0;
  MicroUsd ask;
  WallTime at;
};
struct AttemptGranted {
  AttemptId attempt;
  WorkerId worker;
  BootId boot;  // which life of it: a later one cannot be running the attempt
  WallTime at;
};
struct AttemptDenied {
  AttemptId attempt;
  std::uint32_t seq = 0;
  ScopeId scope;
  MicroUsd short_by;
  WallTime at;
};
struct AttemptResult {
  AttemptId attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  bool infrastructure = false;
  bool overload = false;  // a kind of infrastructure: a provider of models had no room
  Digest report;
  Digest archive;
  std::uint64_t archive_bytes = 0;
  Usage usage;
  std::int64_t started_ms = 0;
  std::int64_t finished_ms = 0;
  bool sets_outcome = false;  // then it is the run's RunEnded too
  WallTime at;
  AttemptFacts facts{};
};
struct AttemptSettled {  // leaves the state alone: finished, lost and cancelled attempts are
                         // settled
  AttemptId attempt;
  MicroUsd charged;
  Cost cost;
  MicroUsd overrun;
  WallTime at;
};
struct AttemptVoided {
  AttemptId attempt;
  std::string reason;
  WallTime at;
};
struct AttemptLost {
  AttemptId attempt;
  std::string reason;
  WallTime at;
  WorkerId worker{};  // whom its grant named, empty: nobody; not written, its row has it
};
// The reason of one that `journal recover` entered because it may have been made.  Where its
// envelopes had less room than a run reserves it holds that room, and `proctor verify` says so.
inline constexpr const char* kEntryLost = "its entry in the journal is lost";
struct AttemptCancelled {
  AttemptId attempt;
  std::string reason;
  WallTime at;
};

// Facts about one run.

struct RunParked {
  RunId run;
  ScopeId scope;
  MicroUsd short_by;
  WallTime at;
};
struct RunUnparked {
  RunId run;
};
struct RunEnded {  // of a run whose outcome no AttemptResult set; set once, never changed
  RunId run;
  AttemptId attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
};

// Its task was taken out of the campaign (R173): it is not started any more.  No journal has it:
// the campaign's own files say so, in every life.
struct RunRemoved {
  RunId run;
  std::optional<RunOutcome> ended{};  // it had ended by then, and so
};

// An operator put a run that ended invalid in line again: the result it ended with stays that of
// its attempt, and decides nothing any more.  Of a run that ended otherwise it is a contradiction.
struct RunReopened {
  AttemptId attempt;
};

// Time that a person spent on a run that had ended (R158, R174): charged to the run's envelopes,
// beside its attempts.
struct RunReviewed {
  std::uint32_t seq = 0;  // 1, 2, ... of the campaign
  RunId run;
  std::uint64_t milli_minutes = 0;
  MicroUsd charged;
  std::string by, note;
  WallTime at;
  friend bool operator==(const RunReviewed&, const RunReviewed&) = default;
};

using JournalWrite =
    std::variant<AttemptIntent, AttemptGranted, AttemptDenied, AttemptResult, AttemptSettled,
                 AttemptVoided, AttemptLost, AttemptCancelled, RunParked, RunUnparked, RunEnded,
                 RunReopened, RunReviewed, Note, EpochBegun, MetaSet, ScopeDefined>;

// Keys of `meta` that every journal has.
inline constexpr const char* kMetaCampaign = "campaign";          // its id
inline constexpr const char* kMetaRegistration = "registration";  // digest, hex
inline constexpr const char* kMetaPlan = "plan";                  // digest of plan.csv, hex

// Read back from the journal.

enum class AttemptState {
  kReserving,  // intent: the answer of the ledger is not known
  kDenied,
  kGranted,  // money reserved; sent or not, running or not: the worker's Sync says
  kFinished,
  kVoided,
  kLost,
  kCancelled,
};
constexpr auto words(AttemptState) {
  using enum AttemptState;
  return std::to_array<Word<AttemptState>>({{"reserving", kReserving},
                                            {"denied", kDenied},
                                            {"granted", kGranted},
                                            {"finished", kFinished},
                                            {"voided", kVoided},
                                            {"lost", kLost},
                                            {"cancelled", kCancelled}});
}

// What the scheduler needs of one attempt.
struct RestoredAttempt {
  AttemptId attempt;
  AttemptState state = AttemptState::kReserving;
  std::uint32_t seq = 0;
  MicroUsd ask;
  WorkerId worker;         // empty: never granted
  BootId boot;             // which life of it
  WallTime granted_at{0};  // 0: never, or not known
  ScopeId denied_scope;    // kDenied
  MicroUsd short_by;
  bool has_result = false;  // outcome, termination, infrastructure and usage are of its result
  bool sets_outcome = false;
  bool infrastructure = false;
  bool overload = false;
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  bool settled = false;  // charged and overrun are final
  MicroUsd charged;
  MicroUsd overrun;
  Usage usage;  // only while it is not settled: afterwards nobody prices it again
};
// Its ask is set aside, and how much of it is charged is still open.
inline bool is_reserved(const RestoredAttempt& a) {
  return !a.settled && (a.state == AttemptState::kGranted || a.state == AttemptState::kFinished ||
                        a.state == AttemptState::kLost || a.state == AttemptState::kCancelled);
}
struct ParkedRun {
  RunId run;
  ScopeId scope;
  MicroUsd short_by;
};
struct EndedRun {
  RunId run;
  AttemptNo attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
};

// Runs without a row are queued: the plan lists them.
struct RestoredState {
  std::vector<MetaSet> meta;              // by key
  std::vector<ScopeSpec> scopes;          // by id
  std::vector<BudgetRaised> raises;       // in the order in which they were made
  std::vector<BudgetAlert> alerts;        // in the order in which they fired
  std::vector<RunDominates> dominant;     // likewise
  std::vector<Note> standing;             // the scheduler's own notes, likewise
  std::vector<Note> shared;               // kNoteShared, likewise
  Epoch last_epoch;                       // 0: none yet
  std::vector<RestoredAttempt> attempts;  // by run, then attempt
  std::vector<ParkedRun> parked;          // by run
  std::vector<EndedRun> ended;            // by run
  std::vector<RunReviewed> reviews;       // by seq, from 1 without a gap
};

// Everything stored about one attempt, for reports and stories.
struct AttemptRecord {
  RestoredAttempt core;  // with usage, settled or not
  std::string rationale;
  AttemptFacts facts;
  std::string reason;  // of void, loss or cancellation
  Digest report;
  Digest archive;
  std::uint64_t archive_bytes = 0;
  std::int64_t started_ms = 0;
  std::int64_t finished_ms = 0;
  Cost cost;
  // When each fact was written; 0: never.
  WallTime intent_at, granted_at, result_at, settled_at, ended_at;
};
struct NoteRecord {
  std::int64_t seq = 0;
  Note note;
};
}  // namespace proctor
