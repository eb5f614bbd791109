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

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
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

using Headers = std::vector<std::pair<std::string, std::string_view>>;  // names in lower case

Result<Headers> parse_headers(std::string_view left) {
  Headers out;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find("\r\n"));
    left.remove_prefix(line.size() + 2);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      return refused("a header line that is none");
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (std::ranges::any_of(value, [](char c) {
          const auto byte = static_cast<unsigned char>(c);
          return (byte < 0x20 && c != '\t') || byte == 0x7F;
        }))
      return refused("a control byte in a header");
    if (kProxyHeadersMax <= out.size()) return refused("too many headers");
    out.emplace_back(lowered(line.substr(0, colon)), value);
  }
  return out;
}

const std::string_view* only(const Headers& headers, std::string_view name, bool& twice) {
  const std::string_view* found = nullptr;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    twice = twice || found != nullptr;
    found = &value;
  }
  return found;
}

// Two hosts for one request: one for us, one for the server.
Status check_host(const Headers& headers, const ProxyRequest& request) {
  bool twice = false;
  const std::string_view* host = only(headers, "host", twice);
  if (twice) return refused("more than one Host");
  if (host == nullptr) return ok_status();
  const auto said = parse_authority(*host, request.target.port);
  if (!said || said->host != request.target.host || said->port != request.target.port)
    return refused("Host is not the one of the URL");
  return ok_status();
}

Status read_body(const Headers& headers, bool old_version, RequestBody& out) {
  bool twice = false;
  const std::string_view* length = only(headers, "content-length", twice);
  const std::string_view* coding = only(headers, "transfer-encoding", twice);
  if (twice || (length != nullptr && coding != nullptr))
    return refused("more than one length of the body");
  if (coding != nullptr) {
    if (old_version || lowered(*coding) != "chunked")
      return refused("a Transfer-Encoding other than chunked");
    out.kind = RequestBody::Kind::kChunked;
  } else if (length != nullptr) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
    const auto bytes = whole_number<std::uint64_t>(*length);
    if (!bytes || kMost < *bytes) return refused("a Content-Length that is no length");
    out.bytes = *bytes;
    out.kind = out.bytes == 0 ? RequestBody::Kind::kNone : RequestBody::Kind::kLength;
  }
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
  std::string path(url.substr(end));
  if (path.find('#') != std::string::npos) return refused("a fragment in a URL");
  if (!path.starts_with('/')) path.insert(0, "/");
  return path;
}

std::string server_head(const std::string& method, const std::string& path,
                        const ProxyTarget& target, const Headers& headers) {
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
    if (!dropped.contains(name) && !name.starts_with("proxy-"))
      out += name + ": " + std::string(value) + "\r\n";
  return out + "connection: close\r\n\r\n";
}
}  // namespace

std::size_t head_length(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

Result<ProxyRequest> parse_proxy_request(std::string_view head) {
  // A line that ends in a bare LF, or one folded, is two lines to some and one to others.
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) return refused("a bare line feed");
    if (head[i] == '\r' && (i + 1 == head.size() || head[i + 1] != '\n'))
      return refused("a bare carriage return");
  }
  if (!head.ends_with("\r\n\r\n")) return refused("the head has no end");
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refused("no request line");
  ProxyRequest out;
  constexpr std::size_t kMethodMax = 20;
  if (!is_token(line.substr(0, first)) || kMethodMax < first) return refused("no method");
  out.method = line.substr(0, first);
  const std::string_view url = line.substr(first + 1, last - first - 1);
  if (!std::ranges::all_of(url, [](char c) { return ' ' < c && c < 0x7F; }))
    return refused("a URL with blanks, control or non-ASCII bytes");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refused("not HTTP/1.1");
  PROCTOR_TRY(const Headers headers, parse_headers(head.substr(line.size() + 2)));
  PROCTOR_CHECK_OK(read_body(headers, version == "HTTP/1.0", out.body));
  out.tunnel = out.method == "CONNECT";
  if (out.tunnel) {
    const auto target = parse_authority(url, 0);
    if (!target) return refused("CONNECT without host:port");
    out.target = *target;
    PROCTOR_CHECK_OK(check_host(headers, out));
    if (out.body.kind != RequestBody::Kind::kNone) return refused("CONNECT with a body");
    return out;
  }
  PROCTOR_TRY(const std::string path, read_url(url, out.target));
  PROCTOR_CHECK_OK(check_host(headers, out));
  out.head = server_head(out.method, path, out.target, headers);
  return out;
}

BodyScanner::BodyScanner(RequestBody body) : left_(body.bytes) {
  if (body.kind == RequestBody::Kind::kLength && 0 < left_) state_ = State::kLength;
  if (body.kind == RequestBody::Kind::kChunked) state_ = State::kSize;
  if (state_ == State::kSize) left_ = 0;
}

Result<std::size_t> BodyScanner::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !done()) {
    if (state_ != State::kLength && state_ != State::kData) {
      PROCTOR_CHECK_OK(on_byte(bytes[used++]));
      continue;
    }
    const std::size_t now = static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, static_cast<std::uint64_t>(bytes.size() - used)));
    used += now;
    left_ -= now;
    if (0 < left_) continue;
    state_ = state_ == State::kLength ? State::kDone : State::kDataEnd;
    before_ = 0;
  }
  return used;
}

Status BodyScanner::end_of_size() {
  if (digits_ == 0) return refused("a chunk without a size");
  digits_ = 0;
  before_ = 0;
  line_ = 0;
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return ok_status();
}

Status BodyScanner::on_byte(char c) {
  constexpr std::size_t kDigitsMax = 13, kSpokenMax = std::size_t{16} << 10;
  switch (state_) {
    case State::kSize: {
      const std::string_view hex = "0123456789abcdef";
      const char small = 'A' <= c && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const std::size_t digit = hex.find(small);
      if (digit != std::string_view::npos) {
        left_ = (left_ << 4U) + digit;
        return ++digits_ <= kDigitsMax ? ok_status() : refused("a chunk too large");
      }
      if (c == '\r') state_ = State::kSizeEnd;
      if (c == ';') state_ = State::kExtension;
      return c == '\r' || c == ';' ? ok_status() : refused("a chunk without a size");
    }
    case State::kExtension:
      if (c == '\r') state_ = State::kSizeEnd;
      if (c == '\n' || kSpokenMax < ++spoken_) return refused("a chunk's extension without end");
      return ok_status();
    case State::kSizeEnd:
      return c == '\n' ? end_of_size() : refused("a bare carriage return");
    case State::kDataEnd:
      if (before_ == 0) {
        before_ = c;
        return c == '\r' ? ok_status() : refused("a chunk longer than its size");
      }
      state_ = State::kSize;
      return c == '\n' ? ok_status() : refused("a chunk longer than its size");
    case State::kTrailer:
      if (kSpokenMax < ++spoken_) return refused("trailers without end");
      if ((c == '\n') != (before_ == '\r')) return refused("a bare line end in a trailer");
      if (c == '\n') {
        if (line_ == 0) state_ = State::kDone;
        line_ = 0;
      } else if (c != '\r') {
        ++line_;
      }
      before_ = c;
      return ok_status();
    case State::kLength:
    case State::kData:
    case State::kDone:
      break;
  }
  return ok_status();
}
}  // namespace proctor
