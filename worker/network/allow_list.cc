#include "worker/network/allow_list.h"

namespace proctor {
namespace {

bool is_below(const std::string& name, const std::string& domain) {
  return domain.size() + 1 < name.size() && name.ends_with(domain) &&
         name[name.size() - domain.size() - 1] == '.';
}

}  // namespace

std::string to_string(const ProxyTarget& target) {
  const bool v6 = target.host.address && !target.host.address->is_v4();
  return (v6 ? "[" + target.host.text + "]" : target.host.text) + ":" + std::to_string(target.port);
}

Result<AllowList> AllowList::of(const std::vector<std::string>& entries) {
  AllowList out;
  for (const std::string& entry : entries) {
    auto place = parse_allowed_place(entry);
    if (!place.ok()) return in_context("allow-list: '" + entry + "'", std::move(place).error());
    out.places_.push_back(std::move(place).value());
  }
  return out;
}

const AllowedPlace* AllowList::entry_for(const ProxyTarget& target) const {
  const AllowedPlace* wild = nullptr;
  for (const AllowedPlace& place : places_) {
    if (place.port != target.port) continue;
    if (!place.below && place.host == target.host) return &place;
    if (place.below && !target.host.address && is_below(target.host.text, place.host.text))
      wild = &place;
  }
  return wild;
}

}  // namespace proctor
