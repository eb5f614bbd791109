#pragma once
// Hosts as text, and Unix sockets by their folder.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {
// Names and addresses, each with exactly one spelling, so that a rule about a host cannot be passed
// by writing it another way (upper case, trailing dot, octal or short IPv4, IPv4 inside IPv6).
// Pure; any thread.
// Source: RFC 1123 (names), RFC 4291 (IPv6), WHATWG URL (a name that ends in a number is an IPv4
// address or nothing).

// IPv4 is kept as IPv4-mapped IPv6, so that the two spellings of one address are one value.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  // network order
  bool is_v4() const;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

IpAddress ip_from_v4(const std::array<std::uint8_t, 4>& bytes);
// "10.0.0.1" or "2001:db8::1"; not "010.0.0.1", "10.1" or "[::1]".  nullopt: no address.
std::optional<IpAddress> parse_ip(std::string_view text);
std::string to_string(const IpAddress& address);  // the one spelling of RFC 5952; IPv4 as such

struct NetHost {
  std::string text;                    // lower case, without trailing dot or brackets
  std::optional<IpAddress> address{};  // an address was written, no name
  friend bool operator==(const NetHost&, const NetHost&) = default;
};
// As it stands before the port in a URL or an authority: IPv6 in brackets.  nullopt: neither a name
// nor an address, or one that others would read differently.
std::optional<NetHost> parse_net_host(std::string_view text);
// 1 to 65535, digits only, no leading zero.
std::optional<std::uint16_t> parse_port(std::string_view text);

// Unix sockets in folders whose paths may be longer than the 107 bytes of an address.

// A listening, non-blocking stream socket `dir`/socket that anybody who sees the folder may connect
// to; `dir` exists and has none.  kUnavailable, beginning with `what`.
Result<UniqueFd> listen_in(const fs::path& dir, int backlog, const std::string& what);
// Connected to `dir`/socket.  kUnavailable as from listen_in().
Result<UniqueFd> connect_in(const fs::path& dir, const std::string& what);
}  // namespace proctor
