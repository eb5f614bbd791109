#pragma once
// `proctor verify`, the part about Redis: what it holds of the campaign against the journal.
//
// Both move while a campaign runs, so the journal is read before and after Redis, which is read at
// one instant.  What Redis holds reserved must be its own pending reservations, exactly; what it
// holds spent must be the settlements of the journal and those of its rows that the journal did not
// have yet; each reservation must be one that the journal had before or has after.  The campaign's
// part of an envelope that it shares must be what Redis holds of that envelope for it.
#include <functional>
#include <optional>
#include <string>

#include "common/ledger/redis_ledger.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/verify_shared.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {

using MoneyProblem = std::function<void(const std::string& where, const std::string& what)>;

// Pure.  False: between the two readings a run began and ended unseen, so that nobody can say
// whether Redis had it: read again.  `view` with its raises.  `part`: of the envelope that it
// shares, as of the instant at which Redis was read.
bool compare_redis(const PlanView& view, const RestoredState& before,
                   const RedisLedger::Stored& redis, const RestoredState& after,
                   const MoneyProblem& problem, std::optional<OwnPart>& part);

// Finds the server and compares, or says why it did not; the value is that one line.  A server
// that is not there is no problem: the journal is the record.
std::string verify_redis(const FrozenCampaign& frozen, JournalReader& journal,
                         const MoneyProblem& problem);

}  // namespace proctor::cli
