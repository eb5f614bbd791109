#pragma once
// What is around a journal that nobody writes to, and what of it the journal does not know
// (coordinator/shell/behind.h): run directories, meter books and results of this host's workers,
// and a Redis that is configured and answers.
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger_store.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {

struct Around {
  std::vector<std::string> problems;  // sentences; empty: the journal knows all of it
  std::vector<AskId> asks;            // that Redis answered
  std::string unasked;                // why Redis was not asked, where one is configured
};
// An error: the journal cannot be read.  One that is not there, or has nothing in it, knows of
// nothing: whatever is around it is a problem then, also what the coordinator's last word says.
Result<Around> look_around(const FrozenCampaign& frozen);
inline constexpr std::uint32_t kAttemptsMax = 255;
// Attempts of which a worker of this host has a meter book or a result, and that worker.  Books are
// read first: a book goes when its result is in the spool.
std::map<AttemptId, WorkerId> held_by_workers(const FrozenCampaign& frozen);
// The coordinator's last word (status.json).
Result<StatusSnapshot> last_status(const StateFolder& folder);
// "PATH says that 2 of 6 runs had ended and 1 was under way", by the coordinator's last word;
// empty: it says nothing of the kind.
std::string begun_by_status(const StateFolder& folder);

}  // namespace proctor::cli
