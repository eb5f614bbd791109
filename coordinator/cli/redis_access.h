#pragma once
// Where the Redis of a campaign is, as the commands find it.
#include <optional>
#include <string>

#include "common/ledger/redis_connection.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// An address of campaign.yaml with the credentials of PROCTOR_REDIS_USER and
// PROCTOR_REDIS_PASSWORD: they come from the environment, never from a file that is committed.
// For tls:// likewise the files PROCTOR_REDIS_CA, PROCTOR_REDIS_CERT and PROCTOR_REDIS_KEY.
Result<RedisEndpoint> redis_endpoint(const std::string& configured);

// The configured server, else the private one of a campaign that runs; nothing when there is none
// or the campaign does without.
std::optional<std::string> redis_address(const FrozenCampaign& frozen);

}  // namespace proctor::cli
