#pragma once
// Every bound of the system that is not a campaign's own setting.  A number that limits something
// is here with its reason, so that the relations between them can be checked.
#include <cstddef>

#include "common/base/clock.h"

namespace proctor::limits {
// Files a person or another program gives us.
inline constexpr std::size_t kConfigFileBytes = std::size_t{4}
                                                << 20;  // a contract or campaign.yaml
inline constexpr std::size_t kConfigDepth = 32;         // nesting of YAML and JSON
inline constexpr std::size_t kConfigNodes = 100'000;    // nodes of one document
inline constexpr std::size_t kReferencedFileBytes = std::size_t{64}
                                                    << 20;  // script or patch of a contract
inline constexpr std::size_t kContractBundleBytes = std::size_t{128} << 20;  // with all its files
inline constexpr std::size_t kPlanRows = 16'000'000;
inline constexpr std::size_t kPlanFileBytes = std::size_t{8} << 30;

// Names.
inline constexpr std::size_t kNameBytes = 100;     // contract, method, stratum, worker
inline constexpr std::size_t kDetailBytes = 4096;  // rationale, error text

// Wire.
inline constexpr std::size_t kFrameBytes = std::size_t{16} << 20;
inline constexpr std::size_t kBatchItems = 4096;  // runs in one Assign, acknowledgements in one Ack
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;  // of a run archive
inline constexpr std::size_t kSlotsMax = 4096;

// One host.
inline constexpr std::size_t kLocalWorkersMax = 64;  // processes that `proctor run` starts
inline constexpr std::size_t kWorkerSlotsMax = 256;  // runs at a time in one of them

// Evidence.
inline constexpr std::size_t kArchiveBytes = std::size_t{1} << 30;  // compressed run directory
inline constexpr std::size_t kArchiveEntries = 100'000;
inline constexpr std::size_t kPatchBytes = std::size_t{256} << 20;
inline constexpr std::size_t kCheckOutputBytes = std::size_t{8}
                                                 << 20;  // kept of each stream of a check
inline constexpr std::size_t kEventBytes = std::size_t{4} << 20;
inline constexpr std::size_t kEventLogBytes = std::size_t{256} << 20;  // events.jsonl
inline constexpr std::size_t kResultFileBytes = std::size_t{64}
                                                << 20;  // JUnit XML or TAP of a check

// Files and folders that a sandbox may have on the host's disk: fewer than a large installation of
// packages has is too few, and each costs an inode and a look of the monitor.
inline constexpr std::size_t kSandboxFiles = 1'000'000;

// Liveness.  Three Syncs may be lost before a worker is suspect; the lease outlives a restart of
// the coordinator (DISTRIBUTED R3, R8).
inline constexpr Millis kSyncInterval{2'000};
inline constexpr Millis kSuspectAfter{15'000};
inline constexpr Millis kLease{15 * 60'000};
static_assert(kSyncInterval * 3 < kSuspectAfter);
static_assert(kSuspectAfter < kLease);
}  // namespace proctor::limits
