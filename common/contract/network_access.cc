#include "common/contract/network_access.h"

#include <algorithm>

namespace proctor {
namespace {

// As an entry must write it.
std::string spelling(const AllowedPlace& place) {
  const bool v6 = place.host.address && !place.host.address->is_v4();
  return (place.below ? "*." : "") + (v6 ? "[" + place.host.text + "]" : place.host.text) + ":" +
         std::to_string(place.port);
}

}  // namespace

Result<AllowedPlace> parse_allowed_place(std::string_view text) {
  const Error refused{Errc::kInvalid, "expected host:port, *.domain:port or address:port"};
  AllowedPlace place;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused;
  std::string_view host = text.substr(0, colon);
  place.below = host.starts_with("*.");
  if (place.below) host.remove_prefix(2);
  const auto name = parse_net_host(host);
  const auto port = parse_port(text.substr(colon + 1));
  if (!name || !port || (place.below && name->address)) return refused;
  // "*.org" allows what anybody may register.
  if (place.below && name->text.find('.') == std::string::npos) return refused;
  place.host = *name;
  place.port = *port;
  if (spelling(place) != text) return refused;
  return place;
}

bool is_allowed_place(std::string_view text) {
  return parse_allowed_place(text).ok();
}

NetworkAccess joined(const NetworkAccess& a, const NetworkAccess& b) {
  if (a.open || b.open) return {true, {}};
  NetworkAccess out = a;
  for (const std::string& place : b.allow)
    if (std::ranges::find(out.allow, place) == out.allow.end()) out.allow.push_back(place);
  return out;
}

std::string describe(const NetworkAccess& access) {
  if (access.open) return "all";
  std::string out;
  for (const std::string& entry : access.allow) out += (out.empty() ? "" : ", ") + entry;
  return out.empty() ? "none" : out;
}

}  // namespace proctor
