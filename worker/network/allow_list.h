#pragma once
// The decision about one request: which entry of an allow-list, if any, lets it pass.  Pure; any
// thread once made.
#include <string>
#include <vector>

#include "common/contract/contract.h"

namespace proctor {

// What a client asks to be connected to.
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
  // goes before one for its domain, because it allows more (address_rules.h).  Null: none.
  const AllowedPlace* entry_for(const ProxyTarget& target) const;

 private:
  std::vector<AllowedPlace> places_;
};

}  // namespace proctor
