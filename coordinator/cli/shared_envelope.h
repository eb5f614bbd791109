#pragma once
// The envelope that a campaign shares with others, as its commands see it: who holds what of it,
// and a person's word that it is new.
#include <string>
#include <vector>

#include "common/ledger/redis_ledger.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {
// The ledger of a campaign in the Redis that it names.  Requires: it keeps its money in one.
Result<RedisLedger> configured_ledger(const Campaign& campaign, const std::string& id,
                                      const std::string& address);

// Who has what, in sentences and a table; or why that is not known.  Empty: nothing is shared.
std::string shared_envelope_text(const FrozenCampaign& frozen, const std::string& unit);
// The same with every amount exact: `text`, an object, with the member "shared".
std::string with_shared_envelope(const FrozenCampaign& frozen, std::string text);

// proctor budget share CAMPAIGN...: the Redis of these campaigns gets their envelope, which has
// been spent from by nobody else.
Result<int> share_envelope(const std::vector<std::string>& folders);

// proctor budget leave CAMPAIGN: no coordinator of it runs, nor is meant to.  Its journal says that
// it has left, and the others are told: it holds what it spent, and the asks of attempts that never
// ended.
Result<int> leave_envelope(const std::string& folder);
}  // namespace proctor::cli
