#pragma once
// How an agent's program ended, as the rationale of its run says it, so that whoever has only the
// rationale (a journal, of any age) knows the exit code.  Pure.
#include <optional>
#include <string>
#include <string_view>

#include "common/score/outcome.h"

namespace proctor {

// `how`: "exit 3", "ended by signal 11".
std::string ended_by_itself(std::string_view how);  // of a program that was at work
std::string could_not_start(std::string_view how);  // of one that was not

// The exit code in a rationale that one of these begins; nothing: it names none.
std::optional<int> agent_exit(std::string_view rationale);

// "; not judged: WHY": ends the rationale of a run whose agent is paid for and whose acceptance
// failed for the host's reasons.  Its outcome is invalid.
std::string not_judged(std::string_view why);
bool is_not_judged(RunOutcome outcome, std::string_view rationale);

}  // namespace proctor
