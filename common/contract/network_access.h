#pragma once
// What of the network a phase may reach (R049, R074, R098): nothing, everything, or the places of
// an allow-list, through a filtering proxy.  Pure; any thread.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/net_host.h"
#include "common/base/result.h"

namespace proctor {

// One entry of an allow-list: "packages.example:443", "*.example.org:80", "10.1.2.3:3128",
// "[fd00::1]:80".
struct AllowedPlace {
  NetHost host;
  bool below = false;  // "*.": every name below `host`, not itself
  std::uint16_t port = 0;
};
// kInvalid: not in the one spelling an entry may have (lower case, no trailing dot, with a port).
Result<AllowedPlace> parse_allowed_place(std::string_view text);
bool is_allowed_place(std::string_view text);

struct NetworkAccess {
  bool open = false;               // the host's network, unfiltered
  std::vector<std::string> allow;  // entries as above; empty when `open`
  bool any() const { return open || !allow.empty(); }
  bool filtered() const { return !open && !allow.empty(); }
  friend bool operator==(const NetworkAccess&, const NetworkAccess&) = default;
};

// What both together may reach.
NetworkAccess joined(const NetworkAccess& a, const NetworkAccess& b);

// "none", "all" or the entries, for people.
std::string describe(const NetworkAccess& access);

}  // namespace proctor
