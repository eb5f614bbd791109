#include "common/contract/method_parser.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
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

// The section `gateway` of a method, and what a tool_loop has in its place.

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
  GatewayModel out{std::move(name), f.text("provider", Need::kMay, kGatewayNameRule),
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
  std::string first = f.text("model", Need::kMay, kGatewayNameRule);
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
    out.models = {read_model(f, f.text("model", Need::kMust, kGatewayNameRule))};
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
  model.name = f.text("model", Need::kMust, kGatewayNameRule);
  model.provider = f.text("provider", Need::kMay, kGatewayNameRule);
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

// One entry of `methods`.

namespace {
void read_overload_exit(const Fields& f, Method& out) {
  // Beyond 125 the shell speaks: not found, not executable, killed.
  if (f.find("overload_exit") != nullptr)
    out.overload_exit = static_cast<int>(f.count("overload_exit", 0, 1, 125));
}

bool is_kept_path(std::string_view text) {
  constexpr std::string_view kHome = "~/";
  if (text.starts_with(kHome)) text.remove_prefix(kHome.size());
  return is_work_glob(text);
}

void read_keep(const Fields& f, Method& out) {
  constexpr TextRule kKeepRule{
      kPathBytes,
      "a file or glob of the workspace such as \"logs/*.json\", or of the home: \"~/traj.json\"",
      is_kept_path};
  out.keep = f.texts("keep", kKeepRule);
  if (kKeptFiles < out.keep.size())
    f.problems().wrong(*f.find("keep"), f.path("keep"),
                       "at most " + std::to_string(kKeptFiles) + " entries");
  if (!out.container) return;
  for (const std::string& path : out.keep)
    if (path.starts_with('~'))
      f.problems().wrong(*f.find("keep"), f.path("keep"),
                         "paths of the workspace: a container has no home");
}

// A value in the file would stand for the worker's secret.
void refuse_shared_names(const Fields& f, const Method& out) {
  for (const std::string& name : out.environment.secrets)
    if (out.variables.contains(name))
      f.problems().wrong(*f.find("variables"), f.path("variables"),
                         name + " either here or in environment.secrets");
}

// A program that only its image knows has what it needs in there, but for what is the worker's.
void read_beside_container(const Fields& f, const Node& node, FileCollector& files, Method& out) {
  const std::string path = f.path("environment");
  out.environment = read_method_environment(node, path, files, f.problems());
  for (const Entry& e : node.entries)
    if (e.key != "secrets" && e.key != "network")
      f.problems().wrong(e.value, path + "." + e.key,
                         "secrets and network alone beside a container, which has its variables "
                         "and the rest in its image");
  if (out.environment.network.filtered())
    f.problems().wrong(*node.find("network"), path + ".network",
                       "true or false: the program of a container has the whole network or none");
  for (const std::string& name : out.environment.secrets)
    if (out.container->variables.contains(name))
      f.problems().wrong(*node.find("secrets"), path + ".secrets",
                         name + " either here or in container.variables");
}

void read_command_method(const Fields& f, const FileSource& source, Method& out) {
  FileCollector files(source, f.problems());
  if (const Node* container = f.find("container")) {
    for (const std::string_view key : {"command", "script", "variables", "files", "gateway"})
      if (const Node* n = f.find(key))
        f.problems().wrong(*n, f.path(key), "either a container or this beside it");
    out.container = read_container(*container, f.path("container"), f.problems());
    out.command = words_for_people(*out.container);
    if (out.container->image.empty())
      f.problems().add(container->at, f.path("container.image"), "nothing", "an image by digest");
    if (const Node* n = f.find("environment")) read_beside_container(f, *n, files, out);
    read_overload_exit(f, out);
    read_keep(f, out);
    return;
  }
  out.command = read_command(f, files, "PROCTOR_METHOD");
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  f.each("files", [&](const Node& n, const std::string& where) { files.add(n, where); });
  if (const Node* n = f.find("environment"))
    out.environment = read_method_environment(*n, f.path("environment"), files, f.problems());
  refuse_shared_names(f, out);
  out.files = files.take();
  if (const Node* n = f.find("gateway"))
    out.gateway = read_gateway(*n, f.path("gateway"), f.problems());
  read_overload_exit(f, out);
  read_keep(f, out);
}

// How a model is reached is the worker's own affair (its models file); here is what is asked of it.
void read_single_shot(const Fields& f, Method& out) {
  constexpr std::uint64_t kAttemptsMost = 20, kTokensMost = 10'000'000;
  ModelCall& call = out.call;
  call.model = f.text("model", Need::kMay, kValueRule);
  if (call.model.empty()) {
    for (const std::string_view key : {"provider", "attempts", "max_output_tokens", "call_timeout"})
      if (const Node* n = f.find(key))
        f.problems().wrong(*n, f.path(key), "a model beside it: without one nothing is called");
    return;
  }
  call.provider = f.text("provider", Need::kMay, kValueRule);
  call.attempts = static_cast<std::uint32_t>(f.count("attempts", call.attempts, 1, kAttemptsMost));
  call.max_output_tokens = f.count("max_output_tokens", call.max_output_tokens, 1, kTokensMost);
  call.timeout = f.duration("call_timeout", call.timeout, std::chrono::milliseconds(1));
}

void only_of(const Fields& f, std::initializer_list<std::string_view> keys,
             std::initializer_list<std::string_view> kinds) {
  std::string who;
  for (const std::string_view kind : kinds)
    who += (who.empty() ? "\"" : " and \"") + std::string(kind) + "\"";
  who = kinds.size() == 1 ? "the kind " + who + " has" : "the kinds " + who + " have";
  for (const std::string_view key : keys)
    if (const Node* n = f.find(key))
      f.problems().wrong(*n, f.path(key), "nothing: only " + who + " it");
}
}  // namespace

Method read_method(const Node& node, const std::string& path, const FileSource& files,
                   Problems& problems) {
  const std::size_t before = problems.count();
  Method out;
  if (node.kind == Node::Kind::kScalar) {
    // `- noop` and `- reference`: name and kind in one word.
    out.name = node.text;
    if (node.text == "reference") {
      out.kind = Method::Kind::kReference;
    } else if (node.text != "noop") {
      problems.wrong(node, path, "noop, reference, or a mapping with name and command");
    }
  } else {
    const Fields f(node, path, kMethodKeys, problems);
    if (node.kind != Node::Kind::kMapping) return out;
    out.name = f.text("name", Need::kMust, kIdRule);
    const bool has_command = f.find("command") != nullptr || f.find("script") != nullptr ||
                             f.find("container") != nullptr;
    if (!has_command && f.find("kind") == nullptr)
      f.missing("kind", "noop, reference, command, single_shot or tool_loop");
    out.kind =
        f.choice("kind", has_command ? Method::Kind::kCommand : Method::Kind::kNoop, kMethodWords);
    if (out.kind == Method::Kind::kCommand)
      read_command_method(f, files, out);
    else
      only_of(f,
              {"command", "script", "files", "variables", "overload_exit", "container",
               "environment", "keep", "gateway"},
              {"command"});
    const bool single_shot = out.kind == Method::Kind::kSingleShot,
               tool_loop = out.kind == Method::Kind::kToolLoop;
    if (single_shot) read_single_shot(f, out);
    if (tool_loop) read_tool_loop(f, out);
    if (!single_shot) only_of(f, {"attempts", "call_timeout"}, {"single_shot"});
    if (!tool_loop) only_of(f, {"as", "max_turns", "breakers"}, {"tool_loop"});
    if (!single_shot && !tool_loop)
      only_of(f, {"model", "provider", "max_output_tokens"}, {"single_shot", "tool_loop"});
  }
  if (problems.count() == before) out.digest = digest_of(out);
  return out;
}
}  // namespace proctor
