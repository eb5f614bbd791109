#include "worker/gateway/policy.h"

#include "common/base/text.h"

namespace proctor {
namespace {
PolicyVerdict refused(std::string member, std::string text) {
  PolicyVerdict out;
  out.refusal = PolicyRefusal{std::move(member), std::move(text)};
  return out;
}

// `tools` without those that are no agent's own, as they were written otherwise; empty: none is
// left.  `fewer`: something is left out.
std::string own_tools(ModelApi api, std::string_view body, const std::vector<PeekedTool>& tools,
                      bool& fewer) {
  std::string out;
  for (const PeekedTool& tool : tools) {
    std::string text(body.substr(tool.span.at, tool.span.size));
    bool own = runs_tool(api, tool.type) == Runs::kClient;
    if (api == ModelApi::kResponses && tool.type == "namespace" && 0 < tool.inner_at.size) {
      bool fewer_inner = false;
      const std::string inner = own_tools(api, body, tool.inner, fewer_inner);
      own = !fewer_inner || !inner.empty();
      if (fewer_inner && own)
        text.replace(tool.inner_at.at - tool.span.at, tool.inner_at.size, '[' + inner + ']');
      fewer = fewer || fewer_inner;
    }
    if (own) out += (out.empty() ? "" : ",") + text;
    fewer = fewer || !own;
  }
  return out;
}

// Some providers refuse an empty list of tools, so that is left out whole.
void leave_out_tools(ModelApi api, std::string_view body, const BodyPeek& peek,
                     std::vector<Splice>& edits) {
  const char* const why = "tools that are not an agent's own are left out";
  bool fewer = false;
  const std::string list = own_tools(api, body, peek.tools, fewer);
  if (fewer && list.empty()) edits.push_back({peek.tools_member, "", "tools", why});
  if (fewer && !list.empty()) edits.push_back({*peek.tools_at, '[' + list + ']', "tools", why});
  for (const PeekedTools& found : peek.found_tools) {
    fewer = false;
    const std::string kept = own_tools(api, body, found.tools, fewer);
    if (fewer) edits.push_back({found.list, '[' + kept + ']', "input.tools", why});
  }
}
}  // namespace

PolicyVerdict judge_request(ModelApi api, std::string_view body, const BodyPeek& peek,
                            const GatewayModel& model, const ModelAccess& access) {
  if (!peek.reaches.empty())
    return refused(peek.reaches, peek.reaches + ": " + printable(peek.reaches_how, 200) +
                                     " is not allowed in this run: " + peek.reaches_instead);
  if (0 < peek.images && !access.image_tokens)
    return refused("messages",
                   "images: nobody has said what one costs with this model (image_tokens)");
  if (!peek.tier.empty() && !access.tiers.contains(peek.tier))
    return refused("service_tier",
                   "the tier \"" + printable(peek.tier, 60) + "\" is not this run's");
  PolicyVerdict out;
  const std::string& send_as = access.send_as.empty() ? model.name : access.send_as;
  if (send_as != peek.model)
    out.edits.push_back(
        {peek.model_at, json_quoted(send_as), "model", "the provider's name of it"});
  leave_out_tools(api, body, peek, out.edits);
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
