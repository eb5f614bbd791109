#include "coordinator/cli/redis_access.h"

#include <cstdlib>

#include "common/base/files.h"
#include "common/ledger/private_redis.h"

namespace proctor::cli {

Result<RedisEndpoint> redis_endpoint(const std::string& configured) {
  PROCTOR_TRY(RedisEndpoint endpoint, parse_redis_endpoint(configured));
  if (const char* user = std::getenv("PROCTOR_REDIS_USER")) endpoint.user = user;
  if (const char* password = std::getenv("PROCTOR_REDIS_PASSWORD"))
    endpoint.password = Secret(password);
  const auto file = [](const char* variable) -> std::string {
    const char* path = std::getenv(variable);
    return path == nullptr ? "" : path;
  };
  endpoint.tls_files = {file("PROCTOR_REDIS_CA"), file("PROCTOR_REDIS_CERT"),
                        file("PROCTOR_REDIS_KEY")};
  return endpoint;
}

std::optional<std::string> redis_address(const FrozenCampaign& frozen) {
  if (frozen.campaign.ledger == Campaign::LedgerKind::kJournal) return std::nullopt;
  if (!frozen.campaign.redis.empty()) return frozen.campaign.redis;
  constexpr std::size_t kAddressBytes = 200;
  Result<std::string> text =
      read_file(PrivateRedis::address_file(frozen.folder.state()), kAddressBytes);
  if (!text.ok()) return std::nullopt;
  std::string address = std::move(text).value();
  while (address.ends_with('\n')) address.pop_back();
  return address;
}

}  // namespace proctor::cli
