#pragma once
// The head of a request as it goes to a provider: the operator's key, and of the agent's own head
// what decides nothing.  Pure; any thread.
#include <string>

#include "common/base/ids.h"
#include "common/contract/models_file.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/provider_connection.h"

namespace proctor {

struct ProviderRequest {
  const ProviderPlace& place;
  const Secret& key;
  ModelAuth auth;
  ModelApi api;
  const GatewayHead& head;  // of the agent
  const std::string& user_agent;
  std::size_t bytes;  // of the body
};
std::string provider_head(const ProviderRequest& request);

}  // namespace proctor
