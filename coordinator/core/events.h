#pragma once
// Events that happen to a campaign (past tense), commands that answer them, and explanations of
// where a run is.  Pure data; any thread.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "common/wire/messages.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/records.h"

namespace proctor {
// Where a run is.
enum class RunPhase : std::uint8_t {
  kQueued,
  kActive,
  kEnded,
  kParked,
  kRemoved,
  kCancelled,  // by the operator: no outcome, and none comes (its last attempt may still be ending)
  kBackoff,    // in line again after a while
  kHeld,       // no attempt is left: a person decides (R107)
};
constexpr auto words(RunPhase) {
  using enum RunPhase;
  return std::to_array<Word<RunPhase>>({{"queued", kQueued},
                                        {"active", kActive},
                                        {"ended", kEnded},
                                        {"parked", kParked},
                                        {"removed", kRemoved},
                                        {"cancelled", kCancelled},
                                        {"backoff", kBackoff},
                                        {"held", kHeld}});
}

// Why it is there, for people and programs.  Made by Scheduler::why(), from the predicates
// that decide.
struct Explanation {
  // One word for programs.  Over: ended, removed, cancelled.  Waits for people or for nothing:
  // parked, decision, gate.  At work: running, cancelling, between.  Waits: backoff, draining,
  // paused, envelope, capability, worker, alone, elsewhere, order.
  std::string code;
  std::string text;  // one sentence that goes on from "run X: "
  using Value = std::variant<std::int64_t, std::string>;
  std::vector<std::pair<std::string, Value>> facts{};  // by name, in the order they are told
};

// {"code": ..., "facts": {...}, "text": ...}.
Json to_json(const Explanation& why);

// Events.

struct WorkerSynced {
  wire::Sync sync;
};
struct WorkerLeft {
  WorkerId worker;
  BootId boot;
  // Attempts whose results its spool still holds; nothing: it does not say (wire version 5).
  std::optional<std::set<AttemptId>> spooled{};
};
// The connection of that life of it is no more.  It may come back on another.
struct WorkerDisconnected {
  WorkerId worker;
  BootId boot;
};
struct ProgressReceived {
  WorkerId worker;
  wire::Progress progress;
};
// A piece of an attempt's archive, or a result whose archive is not whole here yet: it has begun.
struct EvidenceHeard {
  WorkerId worker;
  AttemptId attempt;
};
// A result whose archive (if it has one) is complete and stored.
struct ResultReceived {
  WorkerId worker;
  wire::ResultMessage result;
};
// Everything persisted up to and including `seq` is durable.
struct Persisted {
  std::uint64_t seq = 0;
};
struct Reserved {
  struct Answer {
    AskId id;
    ReserveAnswer answer;
  };
  std::vector<Answer> answers;
};
struct Settled {
  struct Answer {
    AskId id;
    SettleAnswer answer;
  };
  std::vector<Answer> answers;
};
struct Voided {
  std::vector<AskId> ids;
};
// Of the envelope shared with other campaigns: what they hold of it now.
struct ElsewhereHeld {
  Elsewhere held;
};
struct TimerFired {};
struct DrainAsked {};   // start nothing more
struct CancelAsked {};  // start nothing more and stop what runs
// An operator's act; `ticket` names the question, its answer is Answer{ticket}.
struct OperatorAsked {
  std::uint64_t ticket = 0;
  OperatorAct act;
};
using Event = std::variant<WorkerSynced, WorkerLeft, WorkerDisconnected, ProgressReceived,
                           EvidenceHeard, ResultReceived, Persisted, Reserved, Settled, Voided,
                           ElsewhereHeld, TimerFired, DrainAsked, CancelAsked, OperatorAsked>;

// Commands.

// Write, in this order, and answer Persisted{seq} once it is durable.
struct Persist {
  std::uint64_t seq = 0;
  std::vector<JournalWrite> writes;
};
struct Reserve {
  std::vector<ReserveOp> ops;
};
struct Settle {
  std::vector<SettleOp> ops;
};
struct VoidReservations {
  std::vector<VoidOp> ops;
};
// The terminal is durable: nobody will repeat these ids.
struct Forget {
  std::vector<AskId> ids;
};
struct AssignRuns {
  struct Run {
    AttemptId attempt;
    MicroUsd ask;
  };
  WorkerId worker;
  std::vector<Run> runs;
};
struct AckResults {
  WorkerId worker;
  std::vector<AttemptId> attempts;
};
struct CancelAttempts {
  WorkerId worker;
  std::vector<AttemptId> attempts;
  std::string reason;
};
struct ReplySync {
  WorkerId worker;
  wire::SyncReply reply;  // epoch, campaign and next_sync_ms are the shell's to fill
};
struct ArmTimer {
  Instant at;
};
struct Alert {  // for the operator: log and status
  std::string text;
  bool noted = false;          // a write of this step says it already
  std::optional<RunId> run{};  // whom it is about: its name goes in front
};
// To the operator who asked; after what it says is durable.
struct Answer {
  std::uint64_t ticket = 0;
  OperatorAnswer answer;
};
// The caps that hold from now on, and what reviews took beside the attempts, in the journal
// already.  Before the ledger is asked anything more.
struct RaiseCaps {
  std::vector<ScopeSpec> scopes;     // all of them, by id; empty: as they are
  std::vector<MicroUsd> reviewed{};  // by id; empty: nothing
};
// Nothing more will start, and nothing runs; or, after CancelAsked, only what workers have who are
// not heard of.
struct CampaignEnded {
  bool complete = false;  // every run has an outcome, is parked or was cancelled
  bool at_gate = false;   // else: a stage waits to be opened by a person, and nothing else is left
};
using Command =
    std::variant<Persist, Reserve, Settle, VoidReservations, Forget, AssignRuns, AckResults,
                 CancelAttempts, ReplySync, ArmTimer, Alert, Answer, RaiseCaps, CampaignEnded>;
}  // namespace proctor
