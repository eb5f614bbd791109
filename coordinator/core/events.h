#pragma once
// Events that happen to a campaign (past tense), commands that answer them, facts that the journal
// keeps as notes, and explanations of where a run is.  Pure data; any thread.
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
#include "coordinator/core/failures.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/records.h"

namespace proctor {
// Why a run is where it is, for people and programs.  Made by Scheduler::why(), from the predicates
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

// {"code": ..., "facts": {...}, "text": ...}, one line.
std::string to_json(const Explanation& why);

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

// Facts that the journal keeps as notes and that the scheduler's next life reads again: one struct
// per kind, one reader for all of them.  What each changes is in scheduler_facts.cc, and nowhere
// else.

// A decision of the scheduler itself about a worker; an operator's word is an OperatorFact.
struct WorkerJudged {
  enum class Verdict : std::uint8_t {
    kQuarantined,  // it failed too often in a row: it gets nothing for a while
    kReleased,     // it is tried again
    kRecovered,    // it did its work again: its quarantines so far are in no row with later ones
  };
  WorkerId worker;
  Verdict verdict = Verdict::kQuarantined;
  std::uint32_t nth = 0;  // kQuarantined: in a row, from 1; 0 in notes of before: not known
  Millis wait{0};         // kQuarantined: for how long, where the life that said it goes on
  std::string reason{};   // kQuarantined
  WallTime at;
};

Note note_of(const WorkerJudged& fact);

// No attempt of the run is left, and the campaign says that a person decides then (R107): it waits
// until it is approved or cancelled.
struct RunEscalated {
  RunId run;
  std::string reason{};
  WallTime at;
};

Note note_of(const RunEscalated& fact);

using StandingFact = std::variant<OperatorFact, LossJudged, FaultFact, WorkerJudged, RunEscalated,
                                  StageChecked, StageOpened>;
// Of a note whose kind is one of kSchedulerNotes.  kCorrupt names the field.
Result<StandingFact> standing_fact_of(const Note& note);
}  // namespace proctor
