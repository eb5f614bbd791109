#include "common/contract/breaker_parser.h"

#include <algorithm>
#include <vector>

#include "common/contract/contract_digest.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr std::uint64_t kCountMost = 10'000'000;

Breakers::Rule rule_of(const BreakerKind& kind) {
  Breakers::Rule out;
  for (const BreakerParameter& p : kind.all()) out.emplace(p.name, p.otherwise);
  return out;
}

Breakers standard() {
  Breakers out;
  for (const BreakerKind& kind : kBreakerKinds)
    if (kind.standard) out.rules.emplace(kind.code, rule_of(kind));
  return out;
}

bool says_word(const Node& node, std::string_view word) {
  return node.kind == Node::Kind::kScalar && node.text == word;
}

// Throttling that begins after the stop would never be seen.
void check_order(const Fields& f, const Breakers::Rule& rule) {
  const auto first = rule.find("throttle"), last = rule.find("stop");
  if (first == rule.end() || last == rule.end() || first->second < last->second) return;
  f.problems().add(f.at("stop"), f.path("stop"), std::to_string(last->second),
                   "more than throttle, which is " + std::to_string(first->second));
}

}  // namespace

Breakers read_breakers(const Node& node, const std::string& path, Problems& problems) {
  if (says_word(node, "off")) return {};
  Breakers out = standard();
  if (says_word(node, "on")) return out;
  if (node.kind != Node::Kind::kMapping) {
    problems.wrong(node, path, "on, off, or a mapping of breakers to off or their parameters");
    return {};
  }
  std::vector<std::string_view> codes;
  for (const BreakerKind& kind : kBreakerKinds) codes.push_back(kind.code);
  const Fields f(node, path, codes, problems);
  for (const BreakerKind& kind : kBreakerKinds) {
    const Node* given = f.find(kind.code);
    if (given == nullptr) continue;
    const std::string code(kind.code);
    if (says_word(*given, "off")) {
      out.rules.erase(code);
      continue;
    }
    if (given->kind != Node::Kind::kMapping && !says_word(*given, "on")) {
      problems.wrong(*given, f.path(kind.code), "on, off or a mapping of its parameters");
      continue;
    }
    Breakers::Rule rule = rule_of(kind);
    if (given->kind == Node::Kind::kMapping) {
      std::vector<std::string_view> names;
      for (const BreakerParameter& p : kind.all()) names.push_back(p.name);
      const Fields own(*given, f.path(kind.code), names, problems);
      for (const BreakerParameter& p : kind.all())
        rule[std::string(p.name)] = own.count(p.name, p.otherwise, p.otherwise == 0 ? 0 : 1,
                                              p.name == "model_calls" ? kWatchedCalls : kCountMost);
      check_order(own, rule);
    }
    out.rules.insert_or_assign(code, std::move(rule));
  }
  return out;
}

Json breakers_json(const Breakers& breakers) {
  Json out = Json::object();
  for (const BreakerKind& kind : kBreakerKinds) {
    const auto rule = breakers.rules.find(std::string(kind.code));
    if (rule == breakers.rules.end())
      out[std::string(kind.code)] = "off";
    else
      out[std::string(kind.code)] = rule->second;
  }
  return out;
}

void spread_breakers(const Fields& campaign, Campaign& out) {
  Problems& problems = campaign.problems();
  for (const Method& m : out.methods)
    if (m.gateway && m.gateway->breakers.any())
      problems.add(campaign.at("methods"),
                   "methods." + m.name +
                       (m.kind == Method::Kind::kToolLoop ? ".breakers" : ".gateway.breakers"),
                   "breakers of one method",
                   "breakers of the campaign, at its top: they are the same for all methods");
  const Node* node = campaign.find("breakers");
  if (node == nullptr) return;
  const Breakers breakers = read_breakers(*node, "breakers", problems);
  const auto has_gateway = [](const Method& m) { return m.gateway.has_value(); };
  if (breakers.any() && std::ranges::none_of(out.methods, has_gateway))
    problems.wrong(
        *node, "breakers",
        "a method with a gateway or a tool_loop, whose calls they watch, or no breakers");
  for (Method& m : out.methods) {
    if (!m.gateway || !breakers.any()) continue;
    m.gateway->breakers = breakers;
    if (m.digest != Digest()) m.digest = digest_of(m);
  }
}

}  // namespace proctor
