#pragma once
// Which of a provider's APIs answer in the words that a program understands.  Pure; any thread.
#include <string>
#include <string_view>

#include "common/contract/campaign.h"
#include "common/contract/models_file.h"

namespace proctor {

// "anthropic": as campaigns write it.
std::string_view spoken_as(MethodGateway::As as);
// The API that answers in the words of a program which was asked for as `as`.
bool speaks(MethodGateway::As as, ModelApi api);
// Why no call of such a method could be answered by that model; empty: some can.
std::string unspoken(const MethodGateway& gateway, const ModelAccess& access);
// Likewise, of the text of a HostThing of Kind::kGateway.
std::string unspoken(const std::string& gateway, const ModelsFile& models);

}  // namespace proctor
