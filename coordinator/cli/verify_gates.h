#pragma once
// Of `verify`: every stage that was opened was opened by a check that held and as many people as
// were registered, and nothing of one that was not opened was begun.  From the journal's notes, and
// not by the scheduler's own code.  Blocking.
#include <functional>
#include <string>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {

Status verify_gates(
    JournalReader& journal, const FrozenCampaign& frozen, const RestoredState& state,
    const std::function<void(const std::string& where, const std::string& what)>& tell);

}  // namespace proctor::cli
