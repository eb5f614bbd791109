#pragma once
// Notes of the journal: operators' acts, raises, gates and shared envelopes as JSON with sorted
// keys, both ways.  Pure.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "common/pilot/stage_check.h"
#include "coordinator/core/records.h"

namespace proctor {
// An operator's act in the notes (kind kNoteOperator), the runs it changed as ranges.
struct OperatorFact {
  OperatorAct act;  // `runs`: those that it changed
  // Of kRequeue and kApprove: failures of these attempts and of earlier ones count no longer.
  std::vector<AttemptId> forgiven{};
  // Of kRequeue: results that were their runs' outcome and decide nothing any more.
  std::vector<AttemptId> set_aside{};
  BootId boot{};  // of kKick: the life of the worker that is not let in again
};

std::string_view word_of(OperatorActKind kind);  // "pause", ...

Note note_of(const OperatorFact& fact);
// kCorrupt names the field.
Result<OperatorFact> operator_fact_of(const Note& note);

// "0-5 7 9-12": ascending, without repetition.
std::string ranges_of(const std::vector<RunId>& runs);
Result<std::vector<RunId>> runs_of(std::string_view ranges);

// A raised envelope in the notes.

// Requires: reason and name are UTF-8.
Note note_of(const BudgetRaised& raise);
// kCorrupt names the field.
Result<BudgetRaised> raise_of(std::string_view detail, WallTime at);
// What it changes.  kCorrupt: it does not follow from the cap before it; nothing has changed then.
Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& raise);

// A stage's gate in the notes beside the acts of people (OperatorFact): how the stages before it
// were judged, and that it was opened.

// The stages before it are over, and this is what they came to.
struct StageChecked {
  std::string stage;
  Json check;          // StageCheck::canonical()
  Digest digest;       // of that text: what people approve
  bool holds = false;  // every criterion does
  WallTime at;
};
Note note_of(const StageChecked& fact);
// kCorrupt: a member is wrong, or the digest is another text's.
Result<StageChecked> stage_checked_of(const Note& note);

struct StageOpened {
  std::string stage;
  Digest digest;                // of the check that it was opened by
  std::vector<std::string> by;  // who had approved that, by name; empty: nobody had to
  WallTime at;
};
Note note_of(const StageOpened& fact);
Result<StageOpened> stage_opened_of(const Note& note);

// A journal's knowledge of a shared envelope in the notes (kind kNoteShared).  One note says of
// another member how much it may hold at most, or that it has left and what it spent; or of this
// campaign itself how much of the envelope is its own to use.  The last one of each counts.
Note note_of(const SharedFact& fact, WallTime at);
// kCorrupt names the field.
Result<SharedFact> shared_fact_of(const Note& note);

// What they come to, for the campaign `self`.
Result<SharedBook> shared_book_of(std::string self, const std::vector<Note>& notes);
}  // namespace proctor
