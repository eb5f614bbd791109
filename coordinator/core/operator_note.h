#pragma once
// How an operator's act stands in the notes (kind kNoteOperator): JSON with sorted keys, the runs
// it changed as ranges.  Pure.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/core/operator.h"
#include "coordinator/core/records.h"

namespace proctor {

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

}  // namespace proctor
