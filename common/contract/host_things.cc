#include "common/contract/host_things.h"

#include <algorithm>

#include "common/base/digest.h"

namespace proctor {
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
    has += (has.empty() ? "" : ", ") + std::string(word_of(api));
  const auto wanted = std::ranges::find_if(
      kWordsOf<ModelApi>, [&](const auto& word) { return speaks(gateway.as, word.second); });
  return "speaks " + has + " and not as " + std::string(word_of(gateway.as)) + ": api: [" +
         std::string(wanted->first) +
         "] there, or another `as` in the method's gateway (docs/gateway.md)";
}

std::string unspoken(const std::string& gateway, const ModelsFile& models) {
  const std::size_t colon = gateway.find(':');
  const auto access = models.find(colon == std::string::npos ? "" : gateway.substr(colon + 1));
  if (access == models.end()) return "";  // a lack of the model itself
  MethodGateway asked;
  asked.as = from_word<MethodGateway::As>(gateway.substr(0, colon)).value_or(asked.as);
  return unspoken(asked, access->second);
}

namespace {
using Kind = HostThing::Kind;

void add(std::vector<HostThing>& out, const std::vector<std::string>& secrets) {
  for (const std::string& name : secrets) out.push_back({Kind::kSecret, name});
}

void add(std::vector<HostThing>& out, const std::vector<Toolchain>& toolchains) {
  for (const Toolchain& t : toolchains) out.push_back({Kind::kToolchain, t.path});
}

// Commands in the contract's own sandbox: neither a baseline nor a program of an image.
bool sees_the_environment(const Method& method) {
  return (method.kind == Method::Kind::kCommand && !method.container) ||
         method.kind == Method::Kind::kToolLoop;
}
}  // namespace

std::string HostThing::feature() const {
  constexpr std::size_t kMost = 90;
  const std::string word = std::string(word_of(kind)) + ":";
  return word + (word.size() + text.size() <= kMost ? text : sha256(text).hex());
}

std::string describe_thing(std::string_view feature) {
  std::string out(feature);
  if (const std::size_t colon = out.find(':'); colon != std::string::npos) out[colon] = ' ';
  return out;
}

std::vector<HostThing> things_of(const Contract& contract) {
  std::vector<HostThing> out;
  add(out, contract.environment.toolchains);
  if (!contract.setup.empty()) add(out, contract.environment.secrets);
  const Environment usual, &own = contract.environment;
  if (wanted_sandbox(own) != Environment::Sandbox::kBubblewrap) return out;
  if (own.locale != usual.locale) out.push_back({Kind::kLocale, own.locale});
  if (own.timezone != usual.timezone) out.push_back({Kind::kTimeZone, own.timezone});
  return out;
}

std::vector<HostThing> agent_things_of(const Contract& contract) {
  std::vector<HostThing> out;
  add(out, contract.environment.secrets);
  return out;
}

std::vector<HostThing> things_of(const Method& method) {
  std::vector<HostThing> out;
  add(out, method.environment.toolchains);
  add(out, method.environment.secrets);
  for (const GatewayModel& m : method.models()) {
    out.push_back({Kind::kModel, m.name});
    if (method.gateway)
      out.push_back({Kind::kGateway, std::string(word_of(method.gateway->as)) + ":" + m.name});
  }
  return out;
}

std::vector<HostThing> things_of(const Contract& contract, const Method& method) {
  std::vector<HostThing> out = things_of(contract);
  const auto add_all = [&out](const std::vector<HostThing>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  if (sees_the_environment(method)) add_all(agent_things_of(contract));
  add_all(things_of(method));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}
}  // namespace proctor
