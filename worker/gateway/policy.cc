#include "worker/gateway/policy.h"

#include <algorithm>

#include "common/base/text.h"
#include "worker/gateway/body_shapes.h"

namespace proctor {
namespace {

// A namespace is as its tools are.
Runs runs(ModelApi api, const PeekedTool& tool) {
  if (api != ModelApi::kResponses || tool.type != "namespace") return runs_tool(api, tool.type);
  Runs out = Runs::kClient;
  for (const std::string& type : tool.inner) {
    const Runs inner = runs_tool(api, type);
    if (inner == Runs::kUnknown) return inner;
    if (inner == Runs::kProvider) out = inner;
  }
  return out;
}

std::string own_tools(ModelApi api) {
  if (api == ModelApi::kMessages || api == ModelApi::kCountTokens)
    return "\"custom\", or have an input_schema";
  return "of the type \"function\"";
}

PolicyVerdict refused(PolicyRefusal::Why why, std::string member, std::string text) {
  PolicyVerdict out;
  out.refusal = PolicyRefusal{why, std::move(member), std::move(text)};
  return out;
}

// The list without those that the provider would run, as it was written otherwise; an empty list is
// refused by some, so that is left out whole.
std::optional<Splice> without_hosted(ModelApi api, std::string_view body, const BodyPeek& peek) {
  std::string list;
  std::size_t kept = 0;
  for (const PeekedTool& tool : peek.tools) {
    if (runs(api, tool) == Runs::kProvider) continue;
    if (0 < kept++) list += ',';
    list += body.substr(tool.span.at, tool.span.size);
  }
  if (kept == peek.tools.size()) return std::nullopt;
  const char* const why = "tools that the provider would run are left out";
  if (kept == 0) return Splice{peek.tools_member, "", "tools", why};
  return Splice{*peek.tools_at, '[' + list + ']', "tools", why};
}

}  // namespace

bool names_model(const MethodGateway& method, std::string_view name) {
  return name == method.model || std::ranges::any_of(method.aliases, [&](std::string_view alias) {
           if (!alias.ends_with('*')) return name == alias;
           alias.remove_suffix(1);
           return name.starts_with(alias);
         });
}

PolicyVerdict judge_request(ModelApi api, std::string_view body, const BodyPeek& peek,
                            const MethodGateway& method, const ModelAccess& access) {
  using Why = PolicyRefusal::Why;
  if (!names_model(method, peek.model))
    return refused(Why::kUnknownModel, "model",
                   "the model \"" + printable(peek.model, 100) +
                       "\" is not this run's: ask for \"" + method.model + "\"");
  if (!peek.reaches.empty())
    return refused(Why::kNotAllowed, peek.reaches,
                   peek.reaches + ": " + printable(peek.reaches_how, 200) +
                       " is not allowed in this run: " + peek.reaches_instead);
  if (0 < peek.images && !access.image_tokens)
    return refused(Why::kNotAllowed, "messages",
                   "images: nobody has said what one costs with this model (image_tokens)");
  if (!peek.tier.empty() && !access.tiers.contains(peek.tier))
    return refused(Why::kNotAllowed, "service_tier",
                   "the tier \"" + printable(peek.tier, 60) + "\" is not this run's");
  PolicyVerdict out;
  for (const PeekedTool& tool : peek.tools)
    if (runs(api, tool) == Runs::kUnknown)
      return refused(Why::kNotAllowed, "tools",
                     "tools of the type \"" + printable(tool.type, 60) +
                         "\": nobody knows what they cost or reach; an agent's own are " +
                         own_tools(api));
  for (const PeekedTool& tool : peek.found_tools)
    if (runs(api, tool) != Runs::kClient)
      return refused(Why::kNotAllowed, "input.tools",
                     "tools of the type \"" + printable(tool.type, 60) +
                         "\" among those that were found: only an agent's own are allowed, " +
                         own_tools(api));
  const std::string& send_as = access.send_as.empty() ? method.model : access.send_as;
  if (send_as != peek.model)
    out.edits.push_back(
        {peek.model_at, json_quoted(send_as), "model", "the provider's name of it"});
  if (auto edit = without_hosted(api, body, peek)) out.edits.push_back(*std::move(edit));
  const bool counts = api == ModelApi::kChat || api == ModelApi::kCompletions;
  if (!peek.stream || !counts || !access.stream_usage || peek.include_usage == true) return out;
  out.usage_asked = true;
  Splice ask;
  if (peek.include_usage_at)
    ask = {*peek.include_usage_at, "true", "", ""};
  else if (peek.stream_options_at)
    ask = further_member(*peek.stream_options_at, !peek.stream_options_empty, "include_usage",
                         "true");
  else
    ask =
        further_member(peek.root, peek.has_members, "stream_options", R"({"include_usage":true})");
  ask.member = "stream_options";
  ask.why = "the call is charged by what it says of its usage";
  out.edits.push_back(std::move(ask));
  return out;
}

}  // namespace proctor
