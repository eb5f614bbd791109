#pragma once
// Facts of attempts that a sentence alone tells: of rows from before schema 6, of messages from
// before wire version 12, of evidence.  No other code reads a sentence of ours.  Pure; any thread.
#include <string>
#include <string_view>

#include "common/score/outcome.h"
#include "coordinator/core/records.h"

namespace proctor::journal {
// Text of an agent that looks like our words can only count against it.
AttemptFacts facts_in(RunOutcome outcome, Termination termination, std::string_view rationale);
// The same of a note of kind FaultFact::kNote: what its cause says becomes members of its detail.
void complete_fault(Note& note);
// The detail of a note of a WorkerJoined, where it is "NAME with 4 slots".
void complete_joined(std::string_view kind, std::string& detail);
}  // namespace proctor::journal
