#pragma once
// Numbers that stand on the wire.  Never renumbered, never reused; a retired kind keeps its number
// and gets `Retired` in its name.  Private to the codec.
#include <cstddef>
#include <cstdint>

#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "common/wire/messages.h"

namespace proctor::wire {

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

// Enumerations travel as their value: whoever reorders one is told here.
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

}  // namespace proctor::wire
