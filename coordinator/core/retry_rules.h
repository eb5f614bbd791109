#pragma once
// How long a run waits before it is tried again.  Pure, total, thread-safe.
// Source: docs/retries.md, DISTRIBUTED R15; settings: Retries in contract/campaign.h.
#include <cstdint>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace proctor {

struct Retries;

// Why an attempt is made once more.  Each has its own limit and its own waits.
enum class RetryClass : std::uint8_t { kInfrastructure, kOverload };

// first, twice that, four times that, ..., never above `most`.  `nth` counts from 1.
Millis doubled(Millis first, Millis most, std::uint32_t nth);

// The wait before the attempt after `failed`, the nth of its class: between half of doubled() and
// all of it, by the run's seed, so that runs that failed together do not come back together and
// every replay waits as long.
Millis backoff(const Retries& rules, RetryClass of, std::uint32_t nth, std::uint32_t seed,
               const AttemptId& failed);

}  // namespace proctor
