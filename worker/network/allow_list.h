#pragma once
// The decision about one request: which entry of an allow-list, if any, lets it pass, and to which
// addresses its name may lead.  Pure; any thread once made.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/net_host.h"
#include "common/base/words.h"
#include "common/contract/contract.h"

namespace proctor {
// The place that a client asks to be connected to.
struct ProxyTarget {
  NetHost host;
  std::uint16_t port = 0;
};
std::string to_string(const ProxyTarget& target);  // "packages.example:443", "[::1]:80"

class AllowList {
 public:
  // kInvalid: not an entry.
  static Result<AllowList> of(const std::vector<std::string>& entries);
  // An address is only ever allowed by an entry that is that address.  An entry for the very host
  // goes before one for its domain, because it allows more (admits).  Null: none.
  const AllowedPlace* entry_for(const ProxyTarget& target) const;

 private:
  std::vector<AllowedPlace> places_;
};

// Which addresses a run may be led to by a name.
// A name on an allow-list is a promise about a host, not about whatever address its owner puts
// behind it: without these rules a wildcard would lead to the host's own services, and any name to
// the credentials of a cloud's metadata service.
// Source: IANA special-purpose address registries (RFC 6890), cloud vendors' metadata addresses.

enum class AddressKind {
  kPublic,
  kPrivate,    // of somebody's own network: RFC 1918, shared, unique local, benchmark
  kLoopback,   // the worker's host itself
  kLinkLocal,  // also the metadata addresses that clouds have elsewhere
  kUnusable,   // unspecified, multicast, documentation, reserved
};
constexpr auto words(AddressKind) {
  return std::to_array<Word<AddressKind>>({{"public", AddressKind::kPublic},
                                           {"private", AddressKind::kPrivate},
                                           {"loopback", AddressKind::kLoopback},
                                           {"link-local", AddressKind::kLinkLocal},
                                           {"reserved", AddressKind::kUnusable}});
}
// IPv4 inside IPv6 (NAT64, 6to4) is judged as what it leads to.
AddressKind kind_of(const IpAddress& address);

// May a connection that `place` allows go to this address?
//   an address that is listed itself: to it, whatever it is
//   a name that is listed itself:     public, private, loopback
//   a name below a listed domain:     public only
bool admits(const AllowedPlace& place, const IpAddress& address);
}  // namespace proctor
