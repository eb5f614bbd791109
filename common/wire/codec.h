#pragma once
// Messages as bytes, and the bounds of their fields.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/contract/call_limits.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "common/wire/messages.h"

namespace proctor::wire {
// The bounds of single fields of wire messages (schemas/wire.md); those of whole frames and lists
// are in base/limits.h.  The codec refuses what is outside, so that no code behind it needs to ask.

inline constexpr std::size_t kRunNameBytes = 3 * limits::kNameBytes;  // contract/method/replicate
inline constexpr std::size_t kFeaturesMax = 256;  // images that a host's store holds among them
inline constexpr std::size_t kFeaturesMaxUntil5 = 32;
inline constexpr std::uint32_t kDemandMax = limits::kSlotsMax;
inline constexpr std::uint32_t kNextSyncMsMax = 3'600'000;
// The largest value of each counter in a Usage.  A million times it at a million dollars per
// million units still fits the 128 bits in which price() multiplies, and the sum of its categories
// fits 63.
inline constexpr std::uint64_t kUsageMax = kUsageCountMax;
inline constexpr std::int64_t kWallMsMax = 253'402'300'799'999;  // the last one of the year 9999
// A Bundle's payload in one frame, and any other message that carries no payload.
inline constexpr std::size_t kPayloadOverhead = 1024;
inline constexpr std::size_t kBundlePartBytes = limits::kFrameBytes - kPayloadOverhead;
inline constexpr std::size_t kPlainFrameBytes = std::size_t{2} << 20;

// The largest plain frame is a full Assign: three digests' worth of bytes and a name per run.
static_assert(limits::kBatchItems * (kRunNameBytes + 128) < kPlainFrameBytes);
static_assert(limits::kChunkBytes + kPayloadOverhead <= kPlainFrameBytes);

// Numbers on the wire.  They are never renumbered or reused; a retired kind keeps its number
// and gets `Retired` in its name.  Private to the codec.
enum class Kind : std::uint32_t {
  kSync = 1,
  kProgress = 2,
  kWant = 3,
  kArchiveChunk = 4,
  kResult = 5,
  kLeave = 6,
  kSyncReply = 7,
  kAssign = 8,
  kBundle = 9,
  kAck = 10,
  kChunkAck = 11,
  kCancel = 12,
  kRefuse = 13,
};

// How many of kMeteredCounters a usage has after what is older than they are.
constexpr std::size_t metered_in(std::uint32_t version) {
  static_assert(kMeteredCounters.size() == 25, "a counter more belongs to a version of its own");
  return kMeteredSizes[version < 2 ? 0 : version < 8 ? 1 : version < 11 ? 2 : 3];
}

template <class M>
inline constexpr Kind kKindOf = Kind{};
template <>
inline constexpr Kind kKindOf<Sync> = Kind::kSync;
template <>
inline constexpr Kind kKindOf<Progress> = Kind::kProgress;
template <>
inline constexpr Kind kKindOf<Want> = Kind::kWant;
template <>
inline constexpr Kind kKindOf<ArchiveChunk> = Kind::kArchiveChunk;
template <>
inline constexpr Kind kKindOf<ResultMessage> = Kind::kResult;
template <>
inline constexpr Kind kKindOf<Leave> = Kind::kLeave;
template <>
inline constexpr Kind kKindOf<SyncReply> = Kind::kSyncReply;
template <>
inline constexpr Kind kKindOf<Assign> = Kind::kAssign;
template <>
inline constexpr Kind kKindOf<Bundle> = Kind::kBundle;
template <>
inline constexpr Kind kKindOf<Ack> = Kind::kAck;
template <>
inline constexpr Kind kKindOf<ChunkAck> = Kind::kChunkAck;
template <>
inline constexpr Kind kKindOf<Cancel> = Kind::kCancel;
template <>
inline constexpr Kind kKindOf<Refuse> = Kind::kRefuse;

// Enumerations travel as their value: reordering one fails here.
static_assert(static_cast<int>(Stage::kAssigned) == 0);
static_assert(static_cast<int>(Stage::kPreparing) == 1);
static_assert(static_cast<int>(Stage::kAgent) == 2);
static_assert(static_cast<int>(Stage::kExtracting) == 3);
static_assert(static_cast<int>(Stage::kAcceptance) == 4);
static_assert(static_cast<int>(Stage::kPackaging) == 5);
static_assert(static_cast<int>(Stage::kUploading) == 6);
static_assert(static_cast<int>(RunOutcome::kSuccess) == 0);
static_assert(static_cast<int>(RunOutcome::kFailure) == 1);
static_assert(static_cast<int>(RunOutcome::kAcceptanceError) == 2);
static_assert(static_cast<int>(RunOutcome::kInvalid) == 3);
static_assert(static_cast<int>(Termination::kCompleted) == 0);
static_assert(static_cast<int>(Termination::kAgentTimeout) == 1);
static_assert(static_cast<int>(Termination::kBudgetExceeded) == 2);
static_assert(static_cast<int>(Termination::kResourceLimit) == 3);
static_assert(static_cast<int>(Termination::kPolicyStop) == 4);
static_assert(static_cast<int>(Termination::kOperatorCancel) == 5);
static_assert(static_cast<int>(Termination::kInfrastructure) == 6);
static_assert(static_cast<int>(Termination::kAgentUnavailable) == 7);
static_assert(static_cast<int>(Termination::kBreaker) == 8);
static_assert(static_cast<int>(Termination::kModelOverloaded) == 9);
static_assert(static_cast<int>(Fault::kHost) == 0);
static_assert(static_cast<int>(Fault::kTask) == 1);
static_assert(static_cast<int>(Fault::kAgent) == 2);

// Messages as bytes: MessagePack `[version, kind, body]`, body an array in the order written in
// schemas/wire.md.  Fields are never renumbered or reused either.
//
// encode() is for our own messages: one outside its bounds (here and in messages.h) is a
// programmer's error and asserts.  Only text for people (rationale, reason) may be too long or not
// UTF-8: it is clipped and escaped.  decode() is for bytes of a stranger: it never asserts, never
// throws, allocates in proportion to what arrived, and accepts exactly what encode() could have
// written apart from the width of integers.  Fails with kInvalid and message and field:
// "Assign.runs[3].ask: ...".  Pure; any thread.

// For a peer of an older version that is served (messages.h) what is newer is left out.
std::string encode(const Message& message, std::uint32_t version = kVersion);
Result<Message> decode(std::string_view bytes);

// The version a frame says it has, or 0 if it does not look like a frame at all.  The envelope and
// the first field of Refuse are the same in every version, so both sides can refuse a stranger and
// read why they were refused:
//   if (const auto v = peek_version(bytes); v != 0 && !is_served(v))
//     send(encode(wrong_version(v)));
std::uint32_t peek_version(std::string_view bytes);
// Its number in Kind, or 0: to decide whether it is worth decoding.
std::uint64_t peek_kind(std::string_view bytes);
constexpr bool is_spoken(std::uint32_t version) {
  return kOldestVersion <= version && version <= kVersion;
}
constexpr bool is_served(std::uint32_t version) {
  return kOldestServed <= version && version <= kVersion;
}
// "protocol version 3 is not spoken here (4 to 5): update proctor-worker or proctor"
Refuse wrong_version(std::uint32_t version);

// "Sync", for logs and counters.
std::string_view kind_name(const Message& message);
}  // namespace proctor::wire
