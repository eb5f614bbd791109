#pragma once
// What the journal keeps of a stage's gate beside the acts of people (operator_note.h): how the
// stages before it were judged, and that it was opened.  JSON with sorted keys.  Pure.
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/pilot/stage_check.h"
#include "coordinator/core/records.h"

namespace proctor {

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

}  // namespace proctor
