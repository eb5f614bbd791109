#pragma once
// Facts that the journal keeps as notes and that the scheduler's next life reads again: one struct
// per kind, one reader for all of them.  What each changes is in scheduler_apply.cc, and nowhere
// else.  Pure data; any thread.
#include <string>
#include <variant>

#include "common/base/result.h"
#include "coordinator/core/fault_book.h"
#include "coordinator/core/gate_note.h"
#include "coordinator/core/operator_note.h"
#include "coordinator/core/poison.h"
#include "coordinator/core/records.h"

namespace proctor {

// What the scheduler itself decided of a worker; an operator's word is an OperatorFact.
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
