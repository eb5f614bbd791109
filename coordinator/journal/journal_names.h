#pragma once
// The words stored in the journal.  They are part of the file's format: changing how another room
// names an outcome must not change what an old journal means, so they stand here once more.
#include <optional>
#include <string>
#include <string_view>

#include "common/score/outcome.h"
#include "coordinator/core/records.h"

namespace proctor::journal {

std::string_view name_of(AttemptState state);
std::string_view name_of(RunOutcome outcome);
std::string_view name_of(Termination termination);
std::optional<AttemptState> attempt_state(std::string_view name);
std::optional<RunOutcome> run_outcome(std::string_view name);
std::optional<Termination> termination(std::string_view name);
// The counters of a meter as one text, "" when all are zero.
std::string metered_text(const Usage& usage);
bool read_metered(std::string_view text, Usage& out);  // false: not such a text

}  // namespace proctor::journal
