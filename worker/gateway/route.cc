#include "worker/gateway/route.h"

#include <array>

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

}  // namespace proctor
