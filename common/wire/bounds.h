#pragma once
// The bounds of members of wire messages (schemas/wire.md); those of whole frames and lists are in
// base/limits.h.  The codec refuses what is outside, so that no code behind
// it needs to ask.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/fields.h"
#include "common/base/limits.h"
#include "common/contract/call_limits.h"
#include "common/score/outcome.h"

namespace proctor::wire {
inline constexpr std::size_t kRunNameBytes = 3 * limits::kNameBytes;  // contract/method/replicate
inline constexpr std::size_t kFeaturesMax = 256;  // images that a host's store holds among them
inline constexpr std::size_t kFeaturesMaxUntil5 = 32;
inline constexpr std::uint32_t kDemandMax = limits::kSlotsMax;
inline constexpr std::uint32_t kNextSyncMsMax = 3'600'000;
inline constexpr std::uint64_t kWallMsMax = 253'402'300'799'999;  // the last one of the year 9999
// A Bundle's payload in one frame, and any other message that carries no payload.
inline constexpr std::size_t kPayloadOverhead = 1024;
inline constexpr std::size_t kBundlePartBytes = limits::kFrameBytes - kPayloadOverhead;
inline constexpr std::size_t kPlainFrameBytes = std::size_t{2} << 20;

// The largest plain frame is a full Assign: three digests' worth of bytes and a name per run.
static_assert(limits::kBatchItems * (kRunNameBytes + 128) < kPlainFrameBytes);
static_assert(limits::kChunkBytes + kPayloadOverhead <= kPlainFrameBytes);

// Rules of many members.
inline constexpr Rule kAnyNumber{.most = UINT64_MAX};
inline constexpr Rule kName{.bytes = limits::kNameBytes, .text = Rule::Text::kName};
inline constexpr Rule kShort{.bytes = limits::kNameBytes};
inline constexpr Rule kProse{.bytes = limits::kDetailBytes, .text = Rule::Text::kProse};
inline constexpr Rule kBatch{.items = limits::kBatchItems};
inline constexpr Rule kHolds{.items = kHoldsMax, .since = 11};
// Counts of calls, one for each bucket of the rates.
inline constexpr Rule kCounts{.most = kCallsPerMinuteMax, .items = kRateBucketsMax, .since = 4};
// Enumerations travel as their value.
constexpr Rule up_to(auto last) {
  return {.most = static_cast<std::uint64_t>(last)};
}
constexpr Rule since(std::uint32_t version, Rule rule = {}) {
  rule.since = version;
  return rule;
}

// Is [offset, offset + size) inside [0, total)?
constexpr bool fits(std::uint64_t offset, std::size_t size, std::uint64_t total) {
  return offset <= total && size <= total - offset;
}

// An end that came later, and as what a version that has no word for it is told it.
struct LaterEnd {
  Termination end;
  std::uint32_t since;
  Termination before;
};
inline constexpr std::array<LaterEnd, 3> kLaterEnds{
    {{Termination::kAgentUnavailable, 7, Termination::kInfrastructure},
     {Termination::kBreaker, 10, Termination::kBudgetExceeded},
     {Termination::kModelOverloaded, 11, Termination::kInfrastructure}}};
}  // namespace proctor::wire
