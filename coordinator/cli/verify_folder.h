#pragma once
// `proctor verify`, the part about who else could have been there: what of a campaign other users
// of the host may enter or read, and what lies in the journal beside its rows.  Reads; reports
// problems through `problem(where, what)`.
#include <functional>
#include <string>

#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

using FolderProblem = std::function<void(const std::string& where, const std::string& what)>;

// Evidence, reports and state lie in folders of the campaign's own; they and the journal are their
// owner's alone.
void verify_modes(const StateFolder& folder, const FolderProblem& problem);
// Tables, views, triggers and indexes that nobody of ours made, or that are not as we make them.
Status verify_journal_objects(JournalReader& journal, const FolderProblem& problem);

}  // namespace proctor::cli
