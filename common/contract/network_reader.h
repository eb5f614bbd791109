#pragma once
// `network` of a contract, read and written back.  The one-word forms are older than allow-lists:
// what they could say must keep its canonical form, and with it every contract's digest.
// Internal to this room.
#include "common/base/json.h"
#include "common/contract/contract.h"
#include "common/contract/fields.h"

namespace proctor {

// `true`, `false` (also when it is absent) or `{allow: [...]}`.
NetworkAccess read_network(const Fields& fields, std::string_view key);
// The same for agent and checks together, or `{agent: ..., acceptance: ...}`.
void read_network_of_phases(const Fields& fields, std::string_view key, Policy& out);

Json network_json(const NetworkAccess& access);
Json network_json(const Policy& policy);

}  // namespace proctor
