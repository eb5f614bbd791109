#pragma once
// What the scheduler wants written to the journal, as plain data.  One struct per transition of an
// attempt or a run; the journal turns each into a change of its tables (docs/journal.md).
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/contract/cost_model.h"
#include "common/ledger/ledger.h"
#include "common/score/outcome.h"

namespace proctor {

// Step 1 of the order of effects: money is about to be asked for.  A later ask of the same attempt
// has a higher `seq`.
struct AttemptIntent {
  AttemptId attempt;
  std::uint32_t seq = 0;
  MicroUsd ask;
  WallTime at;
};
// Step 3: reserved, and about to be sent to this worker.
struct AttemptGranted {
  AttemptId attempt;
  WorkerId worker;
  BootId boot;  // which life of it
  WallTime at;
};
struct AttemptDenied {
  AttemptId attempt;
  std::uint32_t seq = 0;
  ScopeId scope;
  MicroUsd short_by;
  WallTime at;
};
// Step 5: what the worker reported.  `sets_outcome`: the run ends as this says.
struct AttemptResult {
  AttemptId attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  bool infrastructure = false;
  Digest report, archive;
  std::uint64_t archive_bytes = 0;
  Usage usage;
  std::int64_t started_ms = 0, finished_ms = 0;
  bool sets_outcome = false;
  WallTime at;
};
// Step 6, after the fact: what the ledger charged.
struct AttemptSettled {
  AttemptId attempt;
  MicroUsd charged;
  Cost cost;
  MicroUsd overrun;
  WallTime at;
};
struct AttemptVoided {  // granted, never started
  AttemptId attempt;
  std::string reason;
  WallTime at;
};
struct AttemptLost {  // its worker is gone; charged at its ceiling
  AttemptId attempt;
  std::string reason;
  WallTime at;
};
struct AttemptCancelled {  // by the operator; the run stays to be done
  AttemptId attempt;
  std::string reason;
  WallTime at;
};
struct RunParked {  // no money in `scope`, and none will come back by itself
  RunId run;
  ScopeId scope;
  MicroUsd short_by;
  WallTime at;
};
struct RunUnparked {
  RunId run;
  WallTime at;
};
struct RunEnded {  // without a result of its own: its attempts were lost too often
  RunId run;
  AttemptId attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
  WallTime at;
};
// Everything rare: worker joined or left, suspect, operator acts, alerts, Redis away and back.
struct Note {
  WallTime at;
  std::string kind;
  std::optional<RunId> run;
  std::optional<AttemptId> attempt;
  std::string detail;  // JSON text
};

using JournalWrite = std::variant<AttemptIntent, AttemptGranted, AttemptDenied, AttemptResult,
                                  AttemptSettled, AttemptVoided, AttemptLost, AttemptCancelled,
                                  RunParked, RunUnparked, RunEnded, Note>;

// What a journal holds about one attempt when a campaign is resumed.
struct RestoredAttempt {
  enum class State {
    kReserving,  // intent written: ask again under the same id
    kGranted,    // perhaps sent: its worker's Sync tells
    kDenied,     // the last ask was denied
    kFinished,   // result written, not settled
    kSettled,
    kVoided,
    kLost,
    kCancelled,
  };
  AttemptId attempt;
  State state = State::kReserving;
  std::uint32_t seq = 0;
  MicroUsd ask;
  WorkerId worker;  // kGranted
  BootId boot;
  Usage usage;                  // kFinished
  bool infrastructure = false;  // kFinished: the host failed, not the agent
  bool has_result = false;      // a result is on record, whatever the state
  bool settled = false;         // the ledger's charge is on record
  MicroUsd charged;             // when settled
};

}  // namespace proctor
