#include "common/contract/method_gateway.h"

#include "common/contract/breaker_parser.h"
#include "common/contract/contract_sections.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr std::size_t kAliasesMost = 50;

// A name, or the beginning of one and a star.
bool is_alias(std::string_view text) {
  const std::size_t star = text.find('*');
  return is_one_line(text) && (star == std::string_view::npos || star + 1 == text.size());
}

}  // namespace

MethodGateway read_gateway(const Node& node, const std::string& path, Problems& problems) {
  constexpr std::uint64_t kTokensMost = 10'000'000;
  constexpr TextRule kNameRule{limits::kNameBytes, "a name on one line", is_one_line};
  constexpr TextRule kAliasRule{limits::kNameBytes,
                                "a name on one line, with at most one * at its end", is_alias};
  const Fields f(node, path, kGatewayKeys, problems);
  MethodGateway out;
  out.model = f.text("model", Need::kRequired, kNameRule);
  out.provider = f.text("provider", Need::kOptional, kNameRule);
  if (f.find("as") == nullptr && node.kind == Node::Kind::kMapping)
    f.missing("as", "openai, openai-responses or anthropic: what the program speaks");
  out.as = f.choice("as", out.as, kGatewayWords);
  out.aliases = f.texts("aliases", kAliasRule);
  if (kAliasesMost < out.aliases.size())
    problems.wrong(*f.find("aliases"), f.path("aliases"),
                   "at most " + std::to_string(kAliasesMost) + " entries");
  if (f.find("output_max") != nullptr) out.output_max = f.count("output_max", 1, 1, kTokensMost);
  if (const Node* breakers = f.find("breakers"))
    out.breakers = read_breakers(*breakers, f.path("breakers"), problems);
  return out;
}

Json gateway_json(const MethodGateway& g) {
  Json out = {{"model", g.model}, {"as", word_of(g.as, kGatewayWords)}};
  if (!g.provider.empty()) out["provider"] = g.provider;
  if (!g.aliases.empty()) out["aliases"] = g.aliases;
  if (g.output_max) out["output_max"] = *g.output_max;
  // Absent where there are none: methods of before keep their digests.
  if (g.breakers.any()) out["breakers"] = breakers_json(g.breakers);
  return out;
}

}  // namespace proctor
