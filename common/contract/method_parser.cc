#include "common/contract/method_parser.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/contract/contract_digest.h"

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
  f.complain("stop", std::to_string(last->second),
             "more than throttle, which is " + std::to_string(first->second));
}
}  // namespace

void read_node(const Fields& from, const Node& node, const std::string& path, Breakers& out) {
  Problems& problems = from.problems();
  out = {};
  if (says_word(node, "off")) return;
  if (says_word(node, "on")) {
    out = standard();
    return;
  }
  if (node.kind != Node::Kind::kMapping)
    return problems.wrong(node, path,
                          "on, off, or a mapping of breakers to off or their parameters");
  out = standard();
  const Fields f(node, path, keys_of<Breakers>(), problems);
  for (const BreakerKind& kind : kBreakerKinds) {
    const Node* given = f.find(kind.code);
    if (given == nullptr) continue;
    const std::string code(kind.code);
    if (says_word(*given, "off")) {
      out.rules.erase(code);
      continue;
    }
    if (given->kind != Node::Kind::kMapping && !says_word(*given, "on")) {
      f.wrong(kind.code, "on, off or a mapping of its parameters");
      continue;
    }
    Breakers::Rule rule = rule_of(kind);
    if (given->kind == Node::Kind::kMapping) {
      std::vector<std::string_view> names;
      for (const BreakerParameter& p : kind.all()) names.push_back(p.name);
      const Fields own(*given, f.path(kind.code), names, problems);
      for (const BreakerParameter& p : kind.all())
        own(p.name, rule[std::string(p.name)], p.otherwise == 0 ? 0 : 1,
            p.name == "model_calls" ? kWatchedCalls : kCountMost);
      check_order(own, rule);
    }
    out.rules.insert_or_assign(code, std::move(rule));
  }
}

Json node_json(const Breakers& breakers) {
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
  Breakers breakers;
  read_node(campaign, *node, "breakers", breakers);
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
}  // namespace

// The one that `model` names comes first, else the one that is written first.
void read_models(const Fields& f, MethodGateway& out) {
  constexpr std::size_t kMost = 20;
  const Node* node = f.find("models");
  std::string first;
  f("model", first, kGatewayNameRule, node == nullptr ? Need::kMust : Need::kMay);
  if (node == nullptr) {
    out.models.front().name = first;
    return;
  }
  if (node->kind != Node::Kind::kMapping || node->entries.empty() || kMost < node->entries.size())
    return f.wrong("models", "1 to " + std::to_string(kMost) + " models: NAME: {provider: ...}");
  for (const char* key : {"provider", "aliases", "output_max"})
    f.wrong(key, "the key in each of `models`");
  if (first.empty()) first = node->entries.front().key;
  out.models.clear();
  for (const Entry& e : node->entries) {
    const std::string where = f.path("models") + "." + printable(e.key, 80);
    if (!is_one_line(e.key) || e.key.empty() || kGatewayNameRule.bytes_max < e.key.size())
      f.problems().add(e.at, where, "a name", std::string(kGatewayNameRule.expected));
    read_node(f, e.value, where, out.models.emplace_back());
    out.models.back().name = e.key;
  }
  std::ranges::sort(out.models, [&](const GatewayModel& a, const GatewayModel& b) {
    return std::pair(a.name != first, a.name) < std::pair(b.name != first, b.name);
  });
  if (out.model().name != first) f.wrong("model", "one of `models`");
  check_names(*node, f.path("models"), out.models, f.problems());
}

Json models_json(const std::vector<GatewayModel>& models) {
  Json out = Json::object();
  for (const GatewayModel& m : models) out[m.name] = node_json(m);
  return out;
}

void check_gateway(const Fields& f, const MethodGateway&) {
  if (f.find("as") == nullptr)
    f.missing("as", "openai, openai-responses or anthropic: what the program speaks");
}

void check_loop(const Fields& f, const MethodGateway& gateway) {
  if (gateway.as == MethodGateway::As::kOpenaiResponses)
    f.wrong("as",
            "openai (chat completions) or anthropic (messages), which are what a tool_loop speaks");
}

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

const ReferencedFile* Method::find_file(const std::string& path) const {
  const auto at = std::ranges::lower_bound(files, path, {}, &ReferencedFile::path);
  return at == files.end() || at->path != path ? nullptr : &*at;
}

bool Method::has_run(const std::string& run_name) const {
  return kind != Kind::kRecorded || find_file(recorded_facts(run_name)) != nullptr;
}

std::vector<GatewayModel> Method::models() const {
  if (gateway) return gateway->models;
  if (call.model.empty()) return {};
  return {{call.model, call.provider, {}, std::nullopt}};
}

// One entry of `methods`.

void check_call(const Fields& f, const ModelCall& call) {
  if (!call.model.empty()) return;
  for (const std::string_view key : {"provider", "attempts", "max_output_tokens", "call_timeout"})
    f.wrong(key, "a model beside it: without one nothing is called");
}

void usual_kind(const Fields& f, Method& out) {
  const bool has_command =
      f.find("command") != nullptr || f.find("script") != nullptr || f.find("container") != nullptr;
  out.kind = has_command ? Method::Kind::kCommand : Method::Kind::kNoop;
  if (!has_command && f.find("kind") == nullptr)
    f.missing("kind", "noop, reference, command, single_shot or tool_loop");
}

namespace {
// A program that only its image knows has what it needs in there, but for what is the worker's.
void check_container(const Fields& f, const Method& method) {
  for (const std::string_view key : {"variables", "files", "gateway"})
    f.wrong(key, "either a container or this beside it");
  if (method.container->image.empty())
    f.problems().add(f.at("container"), f.path("container.image"), "nothing", "an image by digest");
  for (const std::string& path : method.keep)
    if (path.starts_with('~')) f.wrong("keep", "paths of the workspace: a container has no home");
  const Node* environment = f.find("environment");
  if (environment == nullptr) return;
  const std::string path = f.path("environment");
  for (const Entry& e : environment->entries)
    if (e.key != "secrets" && e.key != "network")
      f.problems().wrong(e.value, path + "." + e.key,
                         "secrets and network alone beside a container, which has its variables "
                         "and the rest in its image");
  if (method.environment.network.filtered())
    f.problems().wrong(*environment->find("network"), path + ".network",
                       "true or false: the program of a container has the whole network or none");
  for (const std::string& name : method.environment.secrets)
    if (method.container->variables.contains(name))
      f.problems().wrong(*environment->find("secrets"), path + ".secrets",
                         name + " either here or in container.variables");
}

void only_of(const Fields& f, std::initializer_list<std::string_view> keys,
             std::initializer_list<std::string_view> kinds) {
  std::string who;
  for (const std::string_view kind : kinds)
    who += (who.empty() ? "\"" : " and \"") + std::string(kind) + "\"";
  who = kinds.size() == 1 ? "the kind " + who + " has" : "the kinds " + who + " have";
  for (const std::string_view key : keys) f.wrong(key, "nothing: only " + who + " it");
}
}  // namespace

void check_command(const Fields& f, const Method& method) {
  if (method.container) return check_container(f, method);
  f.each("files", [&](const Node& n, const std::string& where) { f.files()->add(n, where); });
  // A value in the file would stand for the worker's secret.
  for (const std::string& name : method.environment.secrets)
    if (method.variables.contains(name))
      f.wrong("variables", name + " either here or in environment.secrets");
}

void check_recorded(const Fields& f, const Method& method) {
  if (method.of == Method::Kind::kRecorded) f.wrong("of", "the kind of the method that made them");
  f.each("files", [&](const Node& n, const std::string& where) { f.files()->add(n, where); });
}

void check_kind(const Fields& f, const Method& method) {
  const bool single_shot = method.kind == Method::Kind::kSingleShot,
             tool_loop = method.kind == Method::Kind::kToolLoop,
             recorded = method.kind == Method::Kind::kRecorded;
  if (method.kind != Method::Kind::kCommand)
    only_of(f,
            {"command", "script", "variables", "overload_exit", "container", "environment", "keep",
             "gateway"},
            {"command"});
  if (method.kind != Method::Kind::kCommand && !recorded)
    only_of(f, {"files"}, {"command", "recorded"});
  if (!recorded) only_of(f, {"of"}, {"recorded"});
  if (!single_shot) only_of(f, {"attempts", "call_timeout"}, {"single_shot"});
  if (!tool_loop) only_of(f, {"as", "max_turns", "breakers"}, {"tool_loop"});
  if (!single_shot && !tool_loop)
    only_of(f, {"model", "provider", "max_output_tokens"}, {"single_shot", "tool_loop"});
}

Method read_method(const Node& node, const std::string& path, const FileSource& source,
                   Problems& problems) {
  const std::size_t before = problems.count();
  Method out;
  FileCollector files(source, problems, "PROCTOR_METHOD");
  if (node.kind == Node::Kind::kScalar) {
    // `- noop` and `- reference`: name and kind in one word.
    out.name = node.text;
    if (node.text == "reference") {
      out.kind = Method::Kind::kReference;
    } else if (node.text != "noop") {
      problems.wrong(node, path, "noop, reference, or a mapping with name and command");
    }
  } else {
    read_fields(node, path, problems, out, &files);
    if (!out.container) out.files = files.take();
  }
  if (problems.count() == before) out.digest = digest_of(out);
  return out;
}
}  // namespace proctor
