#pragma once
// One entry of a campaign's `methods`, and its sections `breakers` and `gateway`: described once
// for the file and the canonical form (fields.h).  Internal to this room.
#include <string>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/contract_sections.h"
#include "common/contract/fields.h"
#include "common/contract/file_source.h"

namespace proctor {
inline constexpr std::uint64_t kCallTokensMost = 10'000'000;

// The section `breakers` of a campaign, which its methods with a gateway carry: "on", "off", or a
// mapping of breakers to "off" or their parameters; those that it does not name are as `on` has
// them.
void read_node(const Fields& from, const Node& node, const std::string& path, Breakers& out);
// Names every kind, so that it reads back as itself.
Json node_json(const Breakers& breakers);
void fields(auto& v, Is<Breakers> auto&) {
  for (const BreakerKind& kind : kBreakerKinds) v.also({kind.code});
}

// Gives the campaign's breakers to its methods, which carry them to workers.
void spread_breakers(const Fields& campaign, Campaign& out);

// Models that a program may ask for: one is written among the keys of its gateway, as before there
// were several, so that its methods keep their digests.
void fields(auto& v, Is<GatewayModel> auto& m) {
  v("provider", m.provider, kGatewayNameRule);
  v("aliases", m.aliases, kAliasRule, 50);
  v("output_max", m.output_max, 1, kCallTokensMost);
}
void read_models(const Fields& f, MethodGateway& out);
Json models_json(const std::vector<GatewayModel>& models);
void check_gateway(const Fields& f, const MethodGateway& gateway);
void fields(auto& v, Is<MethodGateway> auto& g) {
  v.put("model", g.model().name);
  v.put("models", models_json(g.models), 1 < g.models.size());
  v.then(g, read_models);
  if (v.of(g.models.size() == 1)) fields(v, g.models.front());
  v("as", g.as);
  v.then(g, check_gateway);
  if (v.when(g.breakers.any())) v("breakers", g.breakers);
  v("tools", g.tools);
}

// What a tool_loop has in the place of a gateway.
void check_loop(const Fields& f, const MethodGateway& gateway);
void loop_fields(auto& v, auto& m) {
  MethodGateway gateway = m.gateway.value_or(MethodGateway{});
  GatewayModel& model = gateway.models.front();
  std::uint64_t output = model.output_max.value_or(8'192);
  v("model", model.name, kGatewayNameRule, Need::kMust);
  v("provider", model.provider, kGatewayNameRule);
  v("as", gateway.as);
  v.then(gateway, check_loop);
  v("max_output_tokens", output, 1, kCallTokensMost);
  model.output_max = output;
  v("max_turns", m.turns, 1, 10'000);
  if (v.when(gateway.breakers.any())) v("breakers", gateway.breakers);
  keep(m.gateway, gateway);
}

// How a model is reached is the worker's own affair (its models file); here is what is asked of it.
void check_call(const Fields& f, const ModelCall& call);
void fields(auto& v, Is<ModelCall> auto& c) {
  v("model", c.model, kValueRule);
  v("provider", c.provider, kValueRule);
  v("attempts", c.attempts, 1, 20);
  v("max_output_tokens", c.max_output_tokens, 1, kCallTokensMost);
  v("call_timeout", c.timeout, kLeast);
  v.then(c, check_call);
}

void usual_kind(const Fields& f, Method& out);
void check_command(const Fields& f, const Method& method);
void check_recorded(const Fields& f, const Method& method);
void check_kind(const Fields& f, const Method& method);
void fields(auto& v, Is<Method> auto& m) {
  using Kind = Method::Kind;
  v("name", m.name, kIdRule, Need::kMust);
  v.then(m, usual_kind);
  v("kind", m.kind);
  if (v.of(m.kind == Kind::kCommand)) {
    program(v, m);
    v("variables", m.variables, kVariableRule, kVariableValueRule);
    v.put("files", paths_json(m.files), !m.files.empty());
    // Absent where they say nothing: methods written before them keep their digests, and workers
    // that do not know them refuse the others.
    if (v.when(m.overload_exit != 0)) v("overload_exit", m.overload_exit, 1, 125);
    if (v.when(!m.environment.empty())) v("environment", m.environment);
    v("keep", m.keep, kKeepRule, kKeptFiles);
    v("gateway", m.gateway);
    v.then(m, check_command);
  }
  if (v.of(m.kind == Kind::kSingleShot) && v.when(!m.call.model.empty())) fields(v, m.call);
  if (v.of(m.kind == Kind::kToolLoop)) loop_fields(v, m);
  if (v.of(m.kind == Kind::kRecorded)) {
    v("of", m.of);
    v.put("files", paths_json(m.files), !m.files.empty());
    v.then(m, check_recorded);
  }
  v.then(m, check_kind);
}

// One entry of `methods`: the method as far as it could be read, with its digest if `problems` did
// not grow.
Method read_method(const Node& node, const std::string& path, const FileSource& files,
                   Problems& problems);
}  // namespace proctor
