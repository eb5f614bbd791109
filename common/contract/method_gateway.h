#pragma once
// The section `gateway` of a method, and what a tool_loop has in its place.  Pure; any thread.
// Internal to this room.
#include <array>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/fields.h"

namespace proctor {

inline constexpr std::array<Word<MethodGateway::As>, 3> kGatewayWords{
    {{"openai", MethodGateway::As::kOpenai},
     {"openai-responses", MethodGateway::As::kOpenaiResponses},
     {"anthropic", MethodGateway::As::kAnthropic}}};
inline constexpr std::array<Word<MethodGateway::Tools>, 2> kToolsWords{
    {{"offered", MethodGateway::Tools::kOffered}, {"enforced", MethodGateway::Tools::kEnforced}}};

MethodGateway read_gateway(const Node& node, const std::string& path, Problems& problems);
Json gateway_json(const MethodGateway& gateway);
// Keys of the method itself.
void read_tool_loop(const Fields& f, Method& out);
void put_tool_loop(const Method& method, Json& out);

}  // namespace proctor
