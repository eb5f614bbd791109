#pragma once
// A campaign's journal as commands read it that need what has run.
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

inline Error not_begun(const std::filesystem::path& campaign) {
  return Error{Errc::kNotFound, "nothing of this campaign has run yet: proctor run " +
                                    campaign.string() + " begins"};
}

// kNotFound, as not_begun(): there is no journal, or nothing in it.
inline Result<JournalReader> open_journal(const StateFolder& folder) {
  Result<JournalReader> journal = JournalReader::open(folder.journal());
  if (journal.ok() || journal.error().code != Errc::kNotFound) return journal;
  return not_begun(folder.campaign);
}

}  // namespace proctor::cli
