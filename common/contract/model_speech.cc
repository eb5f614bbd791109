#include "common/contract/model_speech.h"

#include <algorithm>

namespace proctor {
namespace {

// What a model has to have that is asked so.
std::string_view wanted_by(MethodGateway::As as) {
  switch (as) {
    case MethodGateway::As::kOpenai:
      return "chat";
    case MethodGateway::As::kOpenaiResponses:
      return "responses";
    case MethodGateway::As::kAnthropic:
      return "messages";
  }
  return {};
}

}  // namespace

bool speaks(MethodGateway::As as, ModelApi api) {
  using As = MethodGateway::As;
  switch (api) {
    case ModelApi::kChat:
    case ModelApi::kCompletions:
      return as == As::kOpenai;
    case ModelApi::kEmbeddings:
      return as != As::kAnthropic;
    case ModelApi::kResponses:
      return as == As::kOpenaiResponses;
    case ModelApi::kMessages:
    case ModelApi::kCountTokens:
      return as == As::kAnthropic;
  }
  return false;
}

std::string unspoken(const MethodGateway& gateway, const ModelAccess& access) {
  if (std::ranges::any_of(access.api, [&](ModelApi api) { return speaks(gateway.as, api); }))
    return "";
  std::string has;
  for (const ModelApi api : access.api)
    has += (has.empty() ? "" : ", ") + std::string(to_string(api));
  return "speaks " + has + " and not as " + std::string(spoken_as(gateway.as)) + ": api: [" +
         std::string(wanted_by(gateway.as)) +
         "] there, or another `as` in the method's gateway (docs/gateway.md)";
}

std::string unspoken(const std::string& gateway, const ModelsFile& models) {
  using As = MethodGateway::As;
  const std::size_t colon = gateway.find(':');
  const auto access = models.find(colon == std::string::npos ? "" : gateway.substr(colon + 1));
  if (access == models.end()) return "";  // a lack of the model itself
  MethodGateway asked;
  for (const As as : {As::kOpenai, As::kOpenaiResponses, As::kAnthropic})
    if (gateway.substr(0, colon) == spoken_as(as)) asked.as = as;
  return unspoken(asked, access->second);
}

}  // namespace proctor
