#include "worker/gateway/http_gate.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/parse.h"

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
// Nobody but this sandbox is meant: a name of a server elsewhere is somebody's trick or mistake.
bool is_loopback(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (lowered(host.substr(0, name.size())) != name) continue;
    const std::string_view port = host.substr(name.size());
    return port.empty() || (port.front() == ':' && port.size() <= 6 && all_digits(port.substr(1)));
  }
  return false;
}

bool names_word(const HttpFields& fields, std::string_view field, std::string_view word) {
  const std::string* value = find_field(fields, field);
  return value != nullptr && lowered(*value).find(word) != std::string::npos;
}

GateRefusal refused(int status, std::string why) {
  return {status, std::move(why)};
}

std::optional<GateRefusal> judge_fields(const GatewayHead& head) {
  constexpr int kMisdirected = 421, kMedia = 415, kUpgrade = 426, kBad = 400;
  if (1 < count_fields(head.fields, "host")) return refused(kBad, "more than one Host");
  const std::string* host = find_field(head.fields, "host");
  if (host == nullptr && !head.old_version) return refused(kBad, "no Host");
  if (host != nullptr && !is_loopback(*host))
    return refused(kMisdirected, "Host is not this machine's loopback");
  if (find_field(head.fields, "upgrade") != nullptr)
    return refused(kUpgrade, "nothing but HTTP/1.1 is spoken here");
  const std::string* encoding = find_field(head.fields, "content-encoding");
  if (encoding != nullptr && lowered(*encoding) != "identity")
    return refused(kMedia, "a Content-Encoding: send the body as it is");
  if (head.method != "POST") return std::nullopt;
  const std::string* type = find_field(head.fields, "content-type");
  const std::string media =
      type == nullptr ? "" : lowered(trimmed(std::string_view(*type).substr(0, type->find(';'))));
  if (media != "application/json")
    return refused(kMedia, "the Content-Type of a request is application/json");
  return std::nullopt;
}
}  // namespace

std::variant<GatewayHead, GateRefusal> judge_head(std::string_view head) {
  constexpr int kBad = 400;
  Result<RequestHead> read = read_request_head(head);
  if (!read.ok()) return refused(kBad, read.error().detail);
  GatewayHead out{std::move(read).value()};
  if (!out.target.starts_with('/') || out.method == "CONNECT" || out.method == "TRACE")
    return refused(kBad, "a target that is no path of this server");
  out.last = out.old_version || names_word(out.fields, "connection", "close");
  out.expects_continue = names_word(out.fields, "expect", "100-continue");
  if (auto no = judge_fields(out)) return *std::move(no);
  return out;
}

Result<AnswerHead> read_answer_head(std::string_view head) {
  constexpr int kLeast = 100, kMost = 599, kNoContent = 204, kNotModified = 304, kOk = 200;
  const Error no_status{Errc::kInvalid, "no status line"};
  PROCTOR_TRY(HttpHead read, read_head(head));
  const std::string_view line = read.line;
  const bool old_version = line.starts_with("HTTP/1.0 ");
  if (!old_version && !line.starts_with("HTTP/1.1 ")) return no_status;
  if (old_version && read.body.kind == HttpFraming::Kind::kChunked) return no_status;
  AnswerHead out;
  out.status = whole_number<int>(line.substr(9, 3)).value_or(0);
  if (out.status < kLeast || kMost < out.status || (line.size() > 12 && line[12] != ' '))
    return no_status;
  out.fields = std::move(read.fields);
  out.body = read.body;
  const bool no_body = out.status < kOk || out.status == kNoContent || out.status == kNotModified;
  if (no_body)
    out.body = {};
  else if (out.body.kind == HttpFraming::Kind::kNone)
    out.body.kind = HttpFraming::Kind::kToTheEnd;
  out.last = old_version || out.body.kind == HttpFraming::Kind::kToTheEnd ||
             names_word(out.fields, "connection", "close");
  return out;
}
}  // namespace proctor
