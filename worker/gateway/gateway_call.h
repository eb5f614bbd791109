#pragma once
// One call of a model: judged, reserved, forwarded, relayed, charged.  Does what the pure parts
// decide.  Blocking; on its connection's thread.  Internal to this room.
#include <string>

#include "worker/gateway/http_gate.h"
#include "worker/gateway/session_shared.h"

namespace proctor {
struct GatewayCallInput {
  GatewaySession::Shared& shared;
  int client;
  const GatewayHead& head;
  ModelApi api;
  std::string& body;
  bool litellm;  // its program says that it is
  std::uint64_t number;
};

// False: the connection ends with it.
bool make_gateway_call(const GatewayCallInput& input);
}  // namespace proctor
