#pragma once
// A campaign's journal as commands read it that need what has run.  Blocking; thread-safe.
#include <optional>

#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

Error not_begun(const std::filesystem::path& campaign);

// Nothing: no coordinator has written anything into it yet.  kCorrupt, with what to type: it is
// not there, or empty, beside results, or beside a coordinator's last word that there were some.
Result<std::optional<JournalReader>> begun_journal(const StateFolder& folder);

// kNotFound, as not_begun(): there is no journal, or nothing in it.  Else as begun_journal().
Result<JournalReader> open_journal(const StateFolder& folder);

}  // namespace proctor::cli
