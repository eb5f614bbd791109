#pragma once
// A campaign's journal as commands read it that need what has run.
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

// kNotFound: nothing of the campaign has run yet, because there is no journal or nothing in it;
// says what to type.
inline Result<JournalReader> open_journal(const StateFolder& folder) {
  Result<JournalReader> journal = JournalReader::open(folder.journal());
  if (journal.ok() || journal.error().code != Errc::kNotFound) return journal;
  return Error{Errc::kNotFound, "nothing of this campaign has run yet: proctor run " +
                                    folder.campaign.string() + " begins"};
}

}  // namespace proctor::cli
