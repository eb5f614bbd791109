#pragma once
// One entry of a campaign's `methods`, and its sections `breakers` and `gateway`.
// Internal to this room.  The two sections are pure; any thread.
#include <array>
#include <string>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/fields.h"
#include "common/contract/file_source.h"

namespace proctor {
// The section `breakers` of a campaign, which its methods with a gateway carry.

// "on", "off", or a mapping of breakers to "off" or their parameters: those that it does not name
// are as `on` has them.
Breakers read_breakers(const Node& node, const std::string& path, Problems& problems);
// Names every kind, so that it reads back as itself.
Json breakers_json(const Breakers& breakers);

// Gives the campaign's breakers to its methods, which carry them to workers.
void spread_breakers(const Fields& campaign, Campaign& out);

// The section `gateway` of a method, and what a tool_loop has in its place.

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

// One entry of `methods`: the method as far as it could be read, with its digest if `problems` did
// not grow.
Method read_method(const Node& node, const std::string& path, const FileSource& files,
                   Problems& problems);
}  // namespace proctor
