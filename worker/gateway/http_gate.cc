#include "worker/gateway/http_gate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace proctor {
namespace {
struct Call {
  std::string_view path;
  ModelApi api;
};
constexpr std::array<Call, 6> kCalls{{{"/chat/completions", ModelApi::kChat},
                                      {"/completions", ModelApi::kCompletions},
                                      {"/responses", ModelApi::kResponses},
                                      {"/embeddings", ModelApi::kEmbeddings},
                                      {"/messages", ModelApi::kMessages},
                                      {"/messages/count_tokens", ModelApi::kCountTokens}}};

Route of_get(std::string_view method, Route route) {
  if (method == "GET" || method == "HEAD") return route;
  return {Route::Place::kWrongMethod, {}, {}, "GET, HEAD"};
}
}  // namespace

Route route_of(std::string_view method, std::string_view target) {
  using Place = Route::Place;
  const std::size_t mark = target.find('?');
  if (mark != std::string_view::npos && target.substr(mark) != "?beta=true") return {};
  std::string_view path = target.substr(0, mark);
  // A path that somebody else could read as another one is none of ours.
  if (path.find_first_of("%;\\") != std::string_view::npos ||
      path.find("//") != std::string_view::npos || path.find("..") != std::string_view::npos)
    return {};
  if (path == "/healthz") return of_get(method, {Place::kHealth, {}, {}, {}});
  if (path == "/proctor/v1/status") return of_get(method, {Place::kStatus, {}, {}, {}});
  constexpr std::string_view kVersion = "/v1", kModels = "/models";
  if (path.starts_with("/v1/")) path.remove_prefix(kVersion.size());
  for (const Call& call : kCalls) {
    if (path != call.path) continue;
    if (method == "POST") return {Place::kCall, call.api, {}, {}};
    if (method == "OPTIONS") return {Place::kOptions, {}, {}, {}};
    return {Place::kWrongMethod, call.api, {}, "POST"};
  }
  if (path == kModels) return of_get(method, {Place::kModels, {}, {}, {}});
  if (path.starts_with(kModels) && path[kModels.size()] == '/' && kModels.size() + 1 < path.size())
    return of_get(method, {Place::kModel, {}, std::string(path.substr(kModels.size() + 1)), {}});
  return {};
}

std::string_view path_of(ModelApi api) {
  if (api == ModelApi::kMessages) return "/v1/messages";
  if (api == ModelApi::kCountTokens) return "/v1/messages/count_tokens";
  for (const Call& call : kCalls)
    if (call.api == api) return call.path;
  return "";
}

namespace {
Error broken(std::string why) {
  return Error{Errc::kInvalid, std::move(why)};
}

char lower(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return ('a' <= lower(c) && lower(c) <= 'z') || ('0' <= c && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t from = text.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

// A line that ends in a bare LF, or one folded, is two lines to some and one to others.
bool has_odd_line_ends(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) return true;
    if (head[i] == '\r' && (i + 1 == head.size() || head[i + 1] != '\n')) return true;
  }
  return !head.ends_with("\r\n\r\n");
}

Result<HttpFields> read_fields(std::string_view left) {
  HttpFields out;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find("\r\n"));
    left.remove_prefix(line.size() + 2);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
      return broken("a header line that is none");
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (std::ranges::any_of(value, [](char c) {
          const auto byte = static_cast<unsigned char>(c);
          return (byte < 0x20 && c != '\t') || byte == 0x7F;
        }))
      return broken("a control byte in a header");
    if (kGatewayFieldsMax <= out.size()) return broken("more than 100 headers");
    out.emplace_back(lower(line.substr(0, colon)), value);
  }
  return out;
}

std::size_t times(const HttpFields& fields, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields, [&](const auto& f) { return f.first == name; }));
}

std::optional<std::uint64_t> length_of(std::string_view text) {
  constexpr std::size_t kDigits = 15;
  std::uint64_t out = 0;
  if (text.empty() || kDigits < text.size() ||
      !std::ranges::all_of(text, [](char c) { return '0' <= c && c <= '9'; }))
    return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Result<HttpFraming> framing_of(const HttpFields& fields, bool old_version) {
  const std::string* length = find_field(fields, "content-length");
  const std::string* coding = find_field(fields, "transfer-encoding");
  if (1 < times(fields, "content-length") + times(fields, "transfer-encoding"))
    return broken("more than one length of the body");
  HttpFraming out;
  if (coding != nullptr) {
    if (old_version || lower(*coding) != "chunked")
      return broken("a Transfer-Encoding other than chunked");
    out.kind = HttpFraming::Kind::kChunked;
  } else if (length != nullptr) {
    const auto bytes = length_of(*length);
    if (!bytes) return broken("a Content-Length that is no length");
    out = {HttpFraming::Kind::kLength, *bytes};
  }
  return out;
}

// Nobody but this sandbox is meant: a name of a server elsewhere is somebody's trick or mistake.
bool is_loopback(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (lower(host.substr(0, name.size())) != name) continue;
    const std::string_view port = host.substr(name.size());
    return port.empty() ||
           (port.front() == ':' && port.size() <= 6 && length_of(port.substr(1)).has_value());
  }
  return false;
}

bool names_word(const HttpFields& fields, std::string_view field, std::string_view word) {
  const std::string* value = find_field(fields, field);
  return value != nullptr && lower(*value).find(word) != std::string::npos;
}

GateRefusal refused(int status, std::string why) {
  return {status, std::move(why)};
}

std::optional<GateRefusal> judge_fields(const GatewayHead& head, bool old_version) {
  constexpr int kMisdirected = 421, kMedia = 415, kUpgrade = 426, kBad = 400;
  if (1 < times(head.fields, "host")) return refused(kBad, "more than one Host");
  const std::string* host = find_field(head.fields, "host");
  if (host == nullptr && !old_version) return refused(kBad, "no Host");
  if (host != nullptr && !is_loopback(*host))
    return refused(kMisdirected, "Host is not this machine's loopback");
  if (find_field(head.fields, "upgrade") != nullptr)
    return refused(kUpgrade, "nothing but HTTP/1.1 is spoken here");
  const std::string* encoding = find_field(head.fields, "content-encoding");
  if (encoding != nullptr && lower(*encoding) != "identity")
    return refused(kMedia, "a Content-Encoding: send the body as it is");
  if (head.method != "POST") return std::nullopt;
  const std::string* type = find_field(head.fields, "content-type");
  const std::string media =
      type == nullptr ? "" : lower(trimmed(std::string_view(*type).substr(0, type->find(';'))));
  if (media != "application/json")
    return refused(kMedia, "the Content-Type of a request is application/json");
  return std::nullopt;
}
}  // namespace

const std::string* find_field(const HttpFields& fields, std::string_view name) {
  const auto it = std::ranges::find_if(fields, [&](const auto& f) { return f.first == name; });
  return it == fields.end() ? nullptr : &it->second;
}

std::size_t gateway_head_length(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

std::variant<GatewayHead, GateRefusal> judge_head(std::string_view head) {
  constexpr int kBad = 400;
  if (has_odd_line_ends(head)) return refused(kBad, "a bare carriage return or line feed");
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refused(kBad, "no request line");
  GatewayHead out;
  constexpr std::size_t kMethodMax = 20;
  if (!is_token(line.substr(0, first)) || kMethodMax < first) return refused(kBad, "no method");
  out.method = line.substr(0, first);
  out.target = line.substr(first + 1, last - first - 1);
  if (!out.target.starts_with('/') || out.method == "CONNECT" || out.method == "TRACE")
    return refused(kBad, "a target that is no path of this server");
  if (!std::ranges::all_of(out.target, [](char c) { return ' ' < c && c < 0x7F; }))
    return refused(kBad, "a path with blanks, control or non-ASCII bytes");
  const std::string_view version = line.substr(last + 1);
  const bool old_version = version == "HTTP/1.0";
  if (version != "HTTP/1.1" && !old_version) return refused(kBad, "not HTTP/1.1");
  Result<HttpFields> fields = read_fields(head.substr(line.size() + 2));
  if (!fields.ok()) return refused(kBad, fields.error().detail);
  out.fields = std::move(fields).value();
  const Result<HttpFraming> body = framing_of(out.fields, old_version);
  if (!body.ok()) return refused(kBad, body.error().detail);
  out.body = *body;
  out.last = old_version || names_word(out.fields, "connection", "close");
  out.expects_continue = names_word(out.fields, "expect", "100-continue");
  if (auto no = judge_fields(out, old_version)) return *std::move(no);
  return out;
}

Result<AnswerHead> read_answer_head(std::string_view head) {
  constexpr int kLeast = 100, kMost = 599, kNoContent = 204, kNotModified = 304, kOk = 200;
  if (has_odd_line_ends(head)) return broken("a bare carriage return or line feed");
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const bool old_version = line.starts_with("HTTP/1.0 ");
  if (!old_version && !line.starts_with("HTTP/1.1 ")) return broken("no status line");
  AnswerHead out;
  const std::string_view code = line.substr(9, 3);
  const auto [end, ec] = std::from_chars(code.data(), code.data() + code.size(), out.status);
  if (ec != std::errc() || end != code.data() + 3 || out.status < kLeast || kMost < out.status ||
      (line.size() > 12 && line[12] != ' '))
    return broken("no status line");
  PROCTOR_TRY(out.fields, read_fields(head.substr(line.size() + 2)));
  PROCTOR_TRY(out.body, framing_of(out.fields, old_version));
  const bool no_body = out.status < kOk || out.status == kNoContent || out.status == kNotModified;
  if (no_body)
    out.body = {};
  else if (out.body.kind == HttpFraming::Kind::kNone)
    out.body.kind = HttpFraming::Kind::kToTheEnd;
  out.last = old_version || out.body.kind == HttpFraming::Kind::kToTheEnd ||
             names_word(out.fields, "connection", "close");
  return out;
}

Result<std::size_t> ChunkReader::feed(std::string_view bytes, std::string& out) {
  std::size_t used = 0;
  while (used < bytes.size() && !done()) {
    if (state_ != State::kData) {
      PROCTOR_CHECK_OK(on_byte(bytes[used++]));
      continue;
    }
    const auto now = static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, static_cast<std::uint64_t>(bytes.size() - used)));
    out.append(bytes.substr(used, now));
    used += now;
    left_ -= now;
    if (left_ == 0) {
      state_ = State::kDataEnd;
      before_ = 0;
    }
  }
  return used;
}

Status ChunkReader::end_of_size() {
  if (digits_ == 0) return broken("a chunk without a size");
  digits_ = 0;
  before_ = 0;
  line_ = 0;
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return ok_status();
}

Status ChunkReader::on_byte(char c) {
  constexpr std::size_t kDigitsMax = 13, kExtensionMax = std::size_t{1} << 10,
                        kTrailerMax = std::size_t{4} << 10;
  switch (state_) {
    case State::kSize: {
      constexpr std::string_view kHex = "0123456789abcdef";
      const std::size_t digit = kHex.find(lower(c));
      if (digit != std::string_view::npos) {
        left_ = (left_ << 4U) + digit;
        return ++digits_ <= kDigitsMax ? ok_status() : broken("a chunk too large");
      }
      if (c != '\r' && c != ';') return broken("a chunk without a size");
      state_ = c == '\r' ? State::kSizeEnd : State::kExtension;
      return ok_status();
    }
    case State::kExtension:
      if (c == '\r') state_ = State::kSizeEnd;
      if (c == '\n' || kExtensionMax < ++extra_) return broken("a chunk's extension without end");
      return ok_status();
    case State::kSizeEnd:
      return c == '\n' ? end_of_size() : broken("a bare carriage return");
    case State::kDataEnd:
      if (before_ == 0) {
        before_ = c;
        return c == '\r' ? ok_status() : broken("a chunk longer than its size");
      }
      left_ = 0;
      state_ = State::kSize;
      return c == '\n' ? ok_status() : broken("a chunk longer than its size");
    case State::kTrailer:
      if (kTrailerMax < ++extra_) return broken("trailers without end");
      if ((c == '\n') != (before_ == '\r')) return broken("a bare line end in a trailer");
      if (c == '\n') {
        if (line_ == 0) state_ = State::kDone;
        line_ = 0;
      } else if (c != '\r') {
        ++line_;
      }
      before_ = c;
      return ok_status();
    case State::kData:
    case State::kDone:
      break;
  }
  return ok_status();
}
}  // namespace proctor
