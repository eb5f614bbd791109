#pragma once
// What a call can come to at most, in tokens, before anybody is asked.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>

#include "common/contract/campaign.h"
#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/splice.h"

namespace proctor {

// Around a message, a tool, ... a provider puts at most so many tokens.
inline constexpr std::uint64_t kTokensPerItem = 16;

struct TokenCeiling {
  std::uint64_t input = 0;
  std::uint64_t asked = 0;  // of output, in each sample; 0: the call has none
  std::uint64_t least = 0;  // a limit below it would be of no use
};

// Every token of a byte-level tokenizer stands for at least one byte of text, and the JSON form of
// a text is never shorter than the text; providers print tools anew, and put words of their own
// around a request.
TokenCeiling ceiling_of(ModelApi api, const BodyPeek& peek, std::uint64_t body_bytes,
                        const GatewayModel& model, const ModelAccess& access);

// What such a call asks of the run's meter, under this id.
MeterFit fit_of(std::string id, const GatewayModel& model, const BodyPeek& peek,
                const TokenCeiling& ceiling);

// Says the limit that was granted to the provider; nullopt: it says so already.
std::optional<Splice> limit_edit(ModelApi api, const BodyPeek& peek, const ModelAccess& access,
                                 std::uint64_t limit);

}  // namespace proctor
