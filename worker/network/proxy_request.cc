#include "worker/network/proxy_request.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/parse.h"

namespace proctor {
namespace {
Error refused(std::string why) {
  return Error{Errc::kInvalid, std::move(why)};
}

// host[:port]; `otherwise` 0: the port is required.
std::optional<ProxyTarget> parse_authority(std::string_view text, std::uint16_t otherwise) {
  std::size_t colon = text.rfind(':');
  if (text.ends_with(']')) colon = std::string_view::npos;  // inside an IPv6 address
  const auto host = parse_net_host(text.substr(0, colon));
  if (!host) return std::nullopt;
  if (colon == std::string_view::npos) {
    if (otherwise == 0) return std::nullopt;
    return ProxyTarget{*host, otherwise};
  }
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return std::nullopt;
  return ProxyTarget{*host, *port};
}

// Two hosts for one request: one for us, one for the server.
Status check_host(const HttpFields& headers, const ProxyRequest& request) {
  if (1 < count_fields(headers, "host")) return refused("more than one Host");
  const std::string* host = find_field(headers, "host");
  if (host == nullptr) return ok_status();
  const auto said = parse_authority(*host, request.target.port);
  if (!said || said->host != request.target.host || said->port != request.target.port)
    return refused("Host is not the one of the URL");
  return ok_status();
}

// The path of an absolute http URL, which also gives the target.
Result<std::string> read_url(std::string_view url, ProxyTarget& target) {
  constexpr std::string_view kScheme = "http://";
  if (lowered(url.substr(0, kScheme.size())) != kScheme)
    return refused("expected CONNECT host:port or an absolute http:// URL");
  url.remove_prefix(kScheme.size());
  const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
  const std::string_view authority = url.substr(0, end);
  if (authority.find('@') != std::string_view::npos) return refused("user information in a URL");
  const auto parsed = parse_authority(authority, 80);
  if (!parsed) return refused("a URL without a proper host");
  target = *parsed;
  url.remove_prefix(end);
  if (url.find('#') != std::string_view::npos) return refused("a fragment in a URL");
  std::string path = url.starts_with('/') ? "" : "/";
  path += url;
  return path;
}

std::string server_head(const std::string& method, const std::string& path,
                        const ProxyTarget& target, const HttpFields& headers) {
  std::set<std::string> dropped = {"host", "connection", "keep-alive",
                                   "te",   "upgrade",    "http2-settings"};
  for (const auto& [name, value] : headers) {
    if (name != "connection") continue;
    for (std::string_view left = value; !left.empty();) {
      const std::string word = lowered(trimmed(take_until(left, ',')));
      // Framing is not the connection's to take away.
      if (word != "content-length" && word != "transfer-encoding") dropped.insert(word);
    }
  }
  std::string host = to_string(target);
  if (target.port == 80) host.resize(host.rfind(':'));
  std::string out = method + " " + path + " HTTP/1.1\r\nhost: " + host + "\r\n";
  for (const auto& [name, value] : headers)
    if (!dropped.contains(name) && !name.starts_with("proxy-")) out += name + ": " + value + "\r\n";
  return out + "connection: close\r\n\r\n";
}
}  // namespace

Result<ProxyRequest> parse_proxy_request(std::string_view head) {
  PROCTOR_TRY(RequestHead read, read_request_head(head));
  ProxyRequest out;
  out.method = std::move(read.method);
  out.body = read.body;
  out.tunnel = out.method == "CONNECT";
  if (out.tunnel) {
    const auto target = parse_authority(read.target, 0);
    if (!target) return refused("CONNECT without host:port");
    out.target = *target;
    PROCTOR_CHECK_OK(check_host(read.fields, out));
    if (!BodyScanner(out.body).done()) return refused("CONNECT with a body");
    return out;
  }
  PROCTOR_TRY(const std::string path, read_url(read.target, out.target));
  PROCTOR_CHECK_OK(check_host(read.fields, out));
  out.head = server_head(out.method, path, out.target, read.fields);
  return out;
}
}  // namespace proctor
