#pragma once
// The bounds of single fields of wire messages (schemas/wire.md); those of whole frames and lists
// are in base/limits.h.  The codec refuses what is outside, so that no code behind it needs to ask.
#include <cstddef>
#include <cstdint>

#include "common/base/limits.h"
#include "common/contract/call_limits.h"
#include "common/contract/cost_model.h"

namespace proctor::wire {

inline constexpr std::size_t kRunNameBytes = 3 * limits::kNameBytes;  // contract/method/replicate
inline constexpr std::size_t kFeaturesMax = 256;  // images that a host's store holds among them
inline constexpr std::size_t kFeaturesMaxUntil5 = 32;
inline constexpr std::uint32_t kDemandMax = limits::kSlotsMax;
inline constexpr std::uint32_t kNextSyncMsMax = 3'600'000;
// Of each counter in a Usage.  A million times it at a million dollars per million units still
// fits the 128 bits in which price() multiplies, and the sum of its categories fits 63.
inline constexpr std::uint64_t kUsageMax = kUsageCountMax;
inline constexpr std::int64_t kWallMsMax = 253'402'300'799'999;  // the last one of the year 9999
// A Bundle's payload in one frame, and any other message that carries no payload.
inline constexpr std::size_t kPayloadOverhead = 1024;
inline constexpr std::size_t kBundlePartBytes = limits::kFrameBytes - kPayloadOverhead;
inline constexpr std::size_t kPlainFrameBytes = std::size_t{2} << 20;

// The largest plain frame is a full Assign: three digests' worth of bytes and a name per run.
static_assert(limits::kBatchItems * (kRunNameBytes + 128) < kPlainFrameBytes);
static_assert(limits::kChunkBytes + kPayloadOverhead <= kPlainFrameBytes);

}  // namespace proctor::wire
