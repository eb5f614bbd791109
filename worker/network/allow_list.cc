#include "worker/network/allow_list.h"

#include <algorithm>
#include <span>

#include "common/base/result.h"

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

namespace {
struct Range {
  const char* first;
  unsigned bits;  // of the prefix
  AddressKind kind;
};

// The first that fits counts: exceptions stand before what they are taken from.
constexpr Range kV4[] = {
    {"168.63.129.16", 32, AddressKind::kLinkLocal},    // Azure
    {"100.100.100.200", 32, AddressKind::kLinkLocal},  // Alibaba
    {"192.0.0.192", 32, AddressKind::kLinkLocal},      // Oracle
    {"169.254.0.0", 16, AddressKind::kLinkLocal},     {"127.0.0.0", 8, AddressKind::kLoopback},
    {"10.0.0.0", 8, AddressKind::kPrivate},           {"172.16.0.0", 12, AddressKind::kPrivate},
    {"192.168.0.0", 16, AddressKind::kPrivate},       {"100.64.0.0", 10, AddressKind::kPrivate},
    {"198.18.0.0", 15, AddressKind::kPrivate},        {"0.0.0.0", 8, AddressKind::kUnusable},
    {"192.0.0.0", 24, AddressKind::kUnusable},        {"192.0.2.0", 24, AddressKind::kUnusable},
    {"198.51.100.0", 24, AddressKind::kUnusable},     {"203.0.113.0", 24, AddressKind::kUnusable},
    {"224.0.0.0", 3, AddressKind::kUnusable},         {"0.0.0.0", 0, AddressKind::kPublic},
};
constexpr Range kV6[] = {
    {"::1", 128, AddressKind::kLoopback},
    {"fd00:ec2::254", 128, AddressKind::kLinkLocal},  // Amazon
    {"fd20:ce::254", 128, AddressKind::kLinkLocal},   // Google
    {"fe80::", 10, AddressKind::kLinkLocal},
    {"fc00::", 7, AddressKind::kPrivate},
    {"fec0::", 10, AddressKind::kPrivate},
    {"64:ff9b:1::", 48, AddressKind::kPrivate},
    {"2001::", 23, AddressKind::kUnusable},  // protocol assignments, Teredo
    {"2001:db8::", 32, AddressKind::kUnusable},
    {"2000::", 3, AddressKind::kPublic},
    {"::", 0, AddressKind::kUnusable},
};

bool in_range(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> first,
              unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(whole), bytes.begin()))
    return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  const unsigned mask = 0xFFU << (8 - rest);
  return (bytes[whole] & mask) == (first[whole] & mask);
}

AddressKind look_up(std::span<const Range> table, const IpAddress& address, std::size_t offset) {
  const auto from = [offset](const IpAddress& a) { return std::span(a.bytes).subspan(offset); };
  for (const Range& range : table) {
    const auto first = parse_ip(range.first);
    PROCTOR_ASSERT(first);
    if (in_range(from(address), from(*first), range.bits)) return range.kind;
  }
  PROCTOR_ASSERT(false);
}

// The IPv4 address at `at` inside an IPv6 one.
IpAddress embedded(const IpAddress& address, std::size_t at) {
  std::array<std::uint8_t, 4> v4{};
  std::copy_n(address.bytes.begin() + static_cast<std::ptrdiff_t>(at), v4.size(), v4.begin());
  return ip_from_v4(v4);
}

constexpr std::size_t kMappedBytes = 12;
}  // namespace

AddressKind kind_of(const IpAddress& address) {
  if (address.is_v4()) return look_up(kV4, address, kMappedBytes);
  const auto inside = [&](const char* first, unsigned bits) {
    return in_range(address.bytes, parse_ip(first)->bytes, bits);
  };
  if (inside("64:ff9b::", 96)) return kind_of(embedded(address, kMappedBytes));
  if (inside("2002::", 16)) return kind_of(embedded(address, 2));
  return look_up(kV6, address, 0);
}

bool admits(const AllowedPlace& place, const IpAddress& address) {
  if (place.host.address) return *place.host.address == address;
  const AddressKind kind = kind_of(address);
  if (kind == AddressKind::kPublic) return true;
  return !place.below && (kind == AddressKind::kPrivate || kind == AddressKind::kLoopback);
}
}  // namespace proctor
