#pragma once
// How what a journal knows of a shared envelope stands in the notes (kind kNoteShared): JSON with
// sorted keys.  One note says of another member how much it may hold at most, or that it has left
// and what it spent; or of this campaign itself how much of the envelope is its own to use.  The
// last one of each counts.  Pure.
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "coordinator/core/records.h"

namespace proctor {

Note note_of(const SharedFact& fact, WallTime at);
// kCorrupt names the field.
Result<SharedFact> shared_fact_of(const Note& note);

// What they come to, for the campaign `self`.
Result<SharedBook> shared_book_of(std::string self, const std::vector<Note>& notes);

}  // namespace proctor
