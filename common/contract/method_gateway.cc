#include "common/contract/method_gateway.h"

#include "common/contract/breaker_parser.h"
#include "common/contract/contract_sections.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr std::size_t kAliasesMost = 50;
constexpr std::uint64_t kCallTokensMost = 10'000'000, kLoopTurnsMost = 10'000, kLoopOutput = 8'192;
constexpr TextRule kGatewayNameRule{limits::kNameBytes, "a name on one line", is_one_line};

// A name, or the beginning of one and a star.
bool is_alias(std::string_view text) {
  const std::size_t star = text.find('*');
  return is_one_line(text) && (star == std::string_view::npos || star + 1 == text.size());
}

}  // namespace

MethodGateway read_gateway(const Node& node, const std::string& path, Problems& problems) {
  constexpr TextRule kAliasRule{limits::kNameBytes,
                                "a name on one line, with at most one * at its end", is_alias};
  const Fields f(node, path, kGatewayKeys, problems);
  MethodGateway out;
  out.model = f.text("model", Need::kRequired, kGatewayNameRule);
  out.provider = f.text("provider", Need::kOptional, kGatewayNameRule);
  if (f.find("as") == nullptr && node.kind == Node::Kind::kMapping)
    f.missing("as", "openai, openai-responses or anthropic: what the program speaks");
  out.as = f.choice("as", out.as, kGatewayWords);
  out.aliases = f.texts("aliases", kAliasRule);
  if (kAliasesMost < out.aliases.size())
    problems.wrong(*f.find("aliases"), f.path("aliases"),
                   "at most " + std::to_string(kAliasesMost) + " entries");
  if (f.find("output_max") != nullptr)
    out.output_max = f.count("output_max", 1, 1, kCallTokensMost);
  if (const Node* breakers = f.find("breakers"))
    out.breakers = read_breakers(*breakers, f.path("breakers"), problems);
  out.tools = f.choice("tools", out.tools, kToolsWords);
  return out;
}

Json gateway_json(const MethodGateway& g) {
  Json out = {{"model", g.model}, {"as", word_of(g.as, kGatewayWords)}};
  if (!g.provider.empty()) out["provider"] = g.provider;
  if (!g.aliases.empty()) out["aliases"] = g.aliases;
  if (g.output_max) out["output_max"] = *g.output_max;
  // Absent where there are none: methods of before keep their digests.
  if (g.breakers.any()) out["breakers"] = breakers_json(g.breakers);
  if (g.tools != MethodGateway::Tools::kNone) out["tools"] = word_of(g.tools, kToolsWords);
  return out;
}

void read_tool_loop(const Fields& f, Method& out) {
  MethodGateway& gateway = out.gateway.emplace();
  gateway.model = f.text("model", Need::kRequired, kGatewayNameRule);
  gateway.provider = f.text("provider", Need::kOptional, kGatewayNameRule);
  gateway.as = f.choice("as", gateway.as, kGatewayWords);
  if (gateway.as == MethodGateway::As::kOpenaiResponses)
    f.problems().wrong(*f.find("as"), f.path("as"),
                       "openai (chat completions) or anthropic (messages), which are what a "
                       "tool_loop speaks");
  gateway.output_max = f.count("max_output_tokens", kLoopOutput, 1, kCallTokensMost);
  out.turns = f.count("max_turns", out.turns, 1, kLoopTurnsMost);
  if (const Node* breakers = f.find("breakers"))
    gateway.breakers = read_breakers(*breakers, f.path("breakers"), f.problems());
}

void put_tool_loop(const Method& method, Json& out) {
  const MethodGateway& gateway = *method.gateway;
  out["model"] = gateway.model;
  if (!gateway.provider.empty()) out["provider"] = gateway.provider;
  out["as"] = word_of(gateway.as, kGatewayWords);
  out["max_output_tokens"] = *gateway.output_max;
  out["max_turns"] = method.turns;
  if (gateway.breakers.any()) out["breakers"] = breakers_json(gateway.breakers);
}

}  // namespace proctor
