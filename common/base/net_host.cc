#include "common/base/net_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/parse.h"

namespace proctor {
namespace {
constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr std::size_t kNameMax = 253, kLabelMax = 63;

// inet_pton takes "01.2.3.4" on some systems.
bool has_leading_zero(std::string_view v4) {
  for (std::size_t i = 0; i + 1 < v4.size(); ++i)
    if (v4[i] == '0' && is_digit(v4[i + 1]) && (i == 0 || v4[i - 1] == '.')) return true;
  return false;
}

bool is_label(std::string_view label) {
  if (label.empty() || kLabelMax < label.size()) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  return std::ranges::all_of(
      label, [](char c) { return ('a' <= c && c <= 'z') || is_digit(c) || c == '-' || c == '_'; });
}

bool is_name(std::string_view name) {
  if (name.empty() || kNameMax < name.size()) return false;
  for (std::string_view left = name;;) {
    const std::size_t dot = left.find('.');
    if (!is_label(left.substr(0, dot))) return false;
    if (dot == std::string_view::npos) {
      // "10.0.0.0x1", "2130706433": some libraries read an address out of it.
      return !is_digit(left.front());
    }
    left.remove_prefix(dot + 1);
  }
}
}  // namespace

bool IpAddress::is_v4() const {
  return std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
}

IpAddress ip_from_v4(const std::array<std::uint8_t, 4>& bytes) {
  IpAddress out;
  std::copy(kMapped.begin(), kMapped.end(), out.bytes.begin());
  std::copy(bytes.begin(), bytes.end(), out.bytes.begin() + kMapped.size());
  return out;
}

std::optional<IpAddress> parse_ip(std::string_view text) {
  if (INET6_ADDRSTRLEN <= text.size()) return std::nullopt;
  const std::string name(text);
  if (name.find('\0') != std::string::npos) return std::nullopt;
  std::array<std::uint8_t, 4> v4{};
  if (!has_leading_zero(name) && ::inet_pton(AF_INET, name.c_str(), v4.data()) == 1)
    return ip_from_v4(v4);
  IpAddress v6;
  if (::inet_pton(AF_INET6, name.c_str(), v6.bytes.data()) == 1) return v6;
  return std::nullopt;
}

std::string to_string(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.is_v4()) {
    ::inet_ntop(AF_INET, address.bytes.data() + kMapped.size(), text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  }
  return text.data();
}

std::optional<NetHost> parse_net_host(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return std::nullopt;
    const std::string_view inner = text.substr(1, text.size() - 2);
    const auto address = inner.find(':') == std::string_view::npos ? std::nullopt : parse_ip(inner);
    if (!address) return std::nullopt;
    return NetHost{to_string(*address), address};
  }
  if (text.find(':') != std::string_view::npos) return std::nullopt;
  if (const auto address = parse_ip(text)) return NetHost{to_string(*address), address};
  std::string name = lowered(text);
  if (name.ends_with('.')) name.pop_back();
  if (!is_name(name)) return std::nullopt;
  return NetHost{std::move(name), std::nullopt};
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  if (text.starts_with('0')) return std::nullopt;
  return whole_number<std::uint16_t>(text);
}

namespace {
// Through a descriptor the path is short whatever it is.
sockaddr_un address_in(const UniqueFd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/socket";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}
}  // namespace

Result<UniqueFd> listen_in(const fs::path& dir, int backlog, const std::string& what) {
  const UniqueFd folder(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(what + ": open " + dir.string(), errno);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error(what, errno);
  const sockaddr_un address = address_in(folder);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how bind is called
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(what + ": bind", errno);
  // The user inside a sandbox is not ours; only the sandbox leads here.
  if (::fchmodat(folder.get(), "socket", 0777, 0) != 0) return errno_error(what + ": chmod", errno);
  if (::listen(fd.get(), backlog) != 0) return errno_error(what + ": listen", errno);
  return fd;
}

Result<UniqueFd> connect_in(const fs::path& dir, const std::string& what) {
  const UniqueFd folder(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(what + ": open " + dir.string(), errno);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error(what, errno);
  const sockaddr_un address = address_in(folder);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how connect is called
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error{Errc::kUnavailable, errno_error(what + ": connect", errno).detail};
  return fd;
}
}  // namespace proctor
