#include "common/contract/network_reader.h"

#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr TextRule kPlaceRule{300, "host:port, *.domain:port or address:port, in lower case",
                              is_allowed_place};
constexpr std::size_t kPlacesMax = 256;

}  // namespace

NetworkAccess read_network(const Fields& fields, std::string_view key) {
  NetworkAccess out;
  const Node* node = fields.find(key);
  if (node == nullptr || node->kind == Node::Kind::kScalar) {
    out.open = fields.flag(key, false);
    return out;
  }
  if (node->kind != Node::Kind::kMapping) {
    fields.problems().wrong(*node, fields.path(key), "true, false or {allow: [host:port, ...]}");
    return out;
  }
  const Fields f(*node, fields.path(key), kNetworkKeys, fields.problems());
  out.allow = f.texts("allow", kPlaceRule);
  const Node* list = f.find("allow");
  if (list == nullptr) {
    f.missing("allow", "a list of host:port");
  } else if (list->kind == Node::Kind::kSequence &&
             (list->items.empty() || kPlacesMax < list->items.size())) {
    f.problems().wrong(*list, f.path("allow"),
                       "1 to " + std::to_string(kPlacesMax) + " entries (no network: false)");
  }
  return out;
}

void read_network_of_phases(const Fields& fields, std::string_view key, Policy& out) {
  const Node* node = fields.find(key);
  if (node != nullptr && node->kind == Node::Kind::kMapping && node->find("allow") == nullptr) {
    const Fields f(*node, fields.path(key), kNetworkPhaseKeys, fields.problems());
    out.agent_network = read_network(f, "agent");
    out.check_network = read_network(f, "acceptance");
  } else {
    out.agent_network = out.check_network = read_network(fields, key);
  }
}

Json network_json(const NetworkAccess& access) {
  if (access.allow.empty()) return access.open;
  return {{"allow", access.allow}};
}

Json network_json(const Policy& policy) {
  if (policy.agent_network == policy.check_network) return network_json(policy.agent_network);
  return {{"agent", network_json(policy.agent_network)},
          {"acceptance", network_json(policy.check_network)}};
}

}  // namespace proctor
