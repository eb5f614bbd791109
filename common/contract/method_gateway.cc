#include "common/contract/method_gateway.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/text.h"
#include "common/contract/breaker_parser.h"
#include "common/contract/contract_sections.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr std::size_t kAliasesMost = 50, kModelsMost = 20;
constexpr std::uint64_t kCallTokensMost = 10'000'000, kLoopTurnsMost = 10'000, kLoopOutput = 8'192;
constexpr TextRule kGatewayNameRule{limits::kNameBytes, "a name on one line", is_one_line};

// A name, or the beginning of one and a star.
bool is_alias(std::string_view text) {
  const std::size_t star = text.find('*');
  return is_one_line(text) && (star == std::string_view::npos || star + 1 == text.size());
}

constexpr TextRule kAliasRule{limits::kNameBytes,
                              "a name on one line, with at most one * at its end", is_alias};

// The keys of one model: of the gateway itself, or of an entry of its `models`.
GatewayModel read_model(const Fields& f, std::string name) {
  GatewayModel out{std::move(name), f.text("provider", Need::kOptional, kGatewayNameRule),
                   f.texts("aliases", kAliasRule), std::nullopt};
  if (kAliasesMost < out.aliases.size())
    f.problems().wrong(*f.find("aliases"), f.path("aliases"),
                       "at most " + std::to_string(kAliasesMost) + " entries");
  if (f.find("output_max") != nullptr)
    out.output_max = f.count("output_max", 1, 1, kCallTokensMost);
  return out;
}

// A name that two models take is neither's.
void check_names(const Node& node, const std::string& path, const std::vector<GatewayModel>& models,
                 Problems& problems) {
  std::map<std::string_view, std::string_view> owner;
  for (const GatewayModel& m : models) {
    std::vector<std::string_view> names(m.aliases.begin(), m.aliases.end());
    names.emplace_back(m.name);
    for (const std::string_view name : names)
      if (const auto [it, fresh] = owner.emplace(name, m.name); !fresh && it->second != m.name)
        problems.add(node.at, path,
                     printable(name, 100) + ", a name of " + printable(it->second, 100) +
                         " and of " + printable(m.name, 100),
                     "a name for one model only");
  }
}

// The one that `model` names comes first, else the one that is written first.
std::vector<GatewayModel> read_models(const Fields& f) {
  const Node& node = *f.find("models");
  const std::string path = f.path("models");
  Problems& problems = f.problems();
  if (node.kind != Node::Kind::kMapping || node.entries.empty() ||
      kModelsMost < node.entries.size()) {
    problems.wrong(node, path,
                   "1 to " + std::to_string(kModelsMost) + " models: NAME: {provider: ...}");
    return std::vector<GatewayModel>(1);
  }
  for (const char* key : {"provider", "aliases", "output_max"})
    if (const Node* said = f.find(key))
      problems.wrong(*said, f.path(key), "the key in each of `models`");
  std::string first = f.text("model", Need::kOptional, kGatewayNameRule);
  if (first.empty()) first = node.entries.front().key;
  std::vector<GatewayModel> out;
  for (const Entry& e : node.entries) {
    const std::string where = path + "." + printable(e.key, 80);
    if (!is_one_line(e.key) || e.key.empty() || kGatewayNameRule.bytes_max < e.key.size())
      problems.add(e.at, where, "a name", std::string(kGatewayNameRule.expected));
    out.push_back(read_model(Fields(e.value, where, kGatewayModelKeys, problems), e.key));
  }
  std::ranges::sort(out, [&](const GatewayModel& a, const GatewayModel& b) {
    return std::pair(a.name != first, a.name) < std::pair(b.name != first, b.name);
  });
  if (out.front().name != first)
    problems.wrong(*f.find("model"), f.path("model"), "one of `models`");
  check_names(node, path, out, problems);
  return out;
}

void put_model(const GatewayModel& m, Json& out) {
  if (!m.provider.empty()) out["provider"] = m.provider;
  if (!m.aliases.empty()) out["aliases"] = m.aliases;
  if (m.output_max) out["output_max"] = *m.output_max;
}

}  // namespace

const GatewayModel* MethodGateway::find(std::string_view asked) const {
  const GatewayModel* out = nullptr;
  std::size_t longest = 0;
  for (const GatewayModel& m : models) {
    if (m.name == asked || std::ranges::find(m.aliases, asked) != m.aliases.end()) return &m;
    for (const std::string_view alias : m.aliases)
      if (alias.ends_with('*') && longest < alias.size() &&
          asked.starts_with(alias.substr(0, alias.size() - 1))) {
        longest = alias.size();
        out = &m;
      }
  }
  return out;
}

std::string MethodGateway::names(std::string_view between) const {
  std::string out;
  for (const GatewayModel& m : models) out += std::string(out.empty() ? "" : between) + m.name;
  return out;
}

std::vector<GatewayModel> Method::models() const {
  if (gateway) return gateway->models;
  if (call.model.empty()) return {};
  return {{call.model, call.provider, {}, std::nullopt}};
}

MethodGateway read_gateway(const Node& node, const std::string& path, Problems& problems) {
  const Fields f(node, path, kGatewayKeys, problems);
  MethodGateway out;
  if (f.find("models") != nullptr)
    out.models = read_models(f);
  else
    out.models = {read_model(f, f.text("model", Need::kRequired, kGatewayNameRule))};
  if (f.find("as") == nullptr && node.kind == Node::Kind::kMapping)
    f.missing("as", "openai, openai-responses or anthropic: what the program speaks");
  out.as = f.choice("as", out.as, kGatewayWords);
  if (const Node* breakers = f.find("breakers"))
    out.breakers = read_breakers(*breakers, f.path("breakers"), problems);
  out.tools = f.choice("tools", out.tools, kToolsWords);
  return out;
}

Json gateway_json(const MethodGateway& g) {
  Json out = {{"model", g.model().name}, {"as", word_of(g.as, kGatewayWords)}};
  // One model is written as before there were several: its methods keep their digests.
  if (g.models.size() == 1) put_model(g.model(), out);
  if (1 < g.models.size())
    for (const GatewayModel& m : g.models) put_model(m, out["models"][m.name] = Json::object());
  // Absent where there are none: methods of before keep their digests.
  if (g.breakers.any()) out["breakers"] = breakers_json(g.breakers);
  if (g.tools != MethodGateway::Tools::kNone) out["tools"] = word_of(g.tools, kToolsWords);
  return out;
}

void read_tool_loop(const Fields& f, Method& out) {
  MethodGateway& gateway = out.gateway.emplace();
  GatewayModel& model = gateway.models.front();
  model.name = f.text("model", Need::kRequired, kGatewayNameRule);
  model.provider = f.text("provider", Need::kOptional, kGatewayNameRule);
  gateway.as = f.choice("as", gateway.as, kGatewayWords);
  if (gateway.as == MethodGateway::As::kOpenaiResponses)
    f.problems().wrong(*f.find("as"), f.path("as"),
                       "openai (chat completions) or anthropic (messages), which are what a "
                       "tool_loop speaks");
  model.output_max = f.count("max_output_tokens", kLoopOutput, 1, kCallTokensMost);
  out.turns = f.count("max_turns", out.turns, 1, kLoopTurnsMost);
  if (const Node* breakers = f.find("breakers"))
    gateway.breakers = read_breakers(*breakers, f.path("breakers"), f.problems());
}

void put_tool_loop(const Method& method, Json& out) {
  const MethodGateway& gateway = *method.gateway;
  out["model"] = gateway.model().name;
  if (!gateway.model().provider.empty()) out["provider"] = gateway.model().provider;
  out["as"] = word_of(gateway.as, kGatewayWords);
  out["max_output_tokens"] = *gateway.model().output_max;
  out["max_turns"] = method.turns;
  if (gateway.breakers.any()) out["breakers"] = breakers_json(gateway.breakers);
}

}  // namespace proctor
