#pragma once
// Rates that are not seen as they are, because outcomes are unknown.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {
// The rates that the data allow when some outcomes are not known: from all of them failures to all
// successes (Manski 2003), and the interval that covers the true rate wherever it lies between
// (Imbens & Manski 2004).

// One task: its runs, those that succeeded, and those whose outcome is not known.
struct PartlyKnown {
  std::uint64_t runs = 0, successes = 0, unknown = 0;
};

struct Bounds {
  Interval identified;  // the rate if every unknown outcome were a failure, and a success
  // Covers the rate with 1 - alpha.  nullopt with one task only.
  std::optional<Interval> interval;
};
// Over tasks with runs.  nullopt without one.  Requires: successes + unknown <= runs.
std::optional<Bounds> bounds_of_rate(std::span<const PartlyKnown> tasks, double alpha = 0.05,
                                     Weighing weighing = Weighing::kTasks);

struct PartlyKnownPair {
  PartlyKnown a, b;
};
// Bounds of a - b over tasks that both tried; `groups` as in paired.h.  Requires: runs > 0 on both
// sides.
std::optional<Bounds> bounds_of_difference(std::span<const PartlyKnownPair> tasks,
                                           double alpha = 0.05,
                                           Weighing weighing = Weighing::kTasks,
                                           std::span<const std::uint32_t> groups = {});
// The hull of both, where either set of tasks may be the one that is meant.
Bounds wider(const Bounds& x, const Bounds& y);
}  // namespace proctor
