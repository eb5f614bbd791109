#pragma once
// What an earlier stage says about the variance of a later one, without a look at the difference:
// exchanging the two methods changes nothing here.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/paired.h"

namespace proctor {

struct PilotVariance {
  std::uint64_t tasks = 0;            // with a run of both methods
  std::uint32_t runs = 0;             // of each method on each task
  double between = 0;                 // variance of task differences
  double within_a = 0, within_b = 0;  // mean variance between runs of a task
  double upper = 0;                   // of `between`, 80 % one-sided
  // The same upper limit had there been `other` runs per task and method.
  double upper_at(std::uint32_t other) const;
};
// Nothing: below two such tasks, unequal numbers of runs, or one run a task.
std::optional<PilotVariance> pilot_variance(std::span<const PairedTask> tasks,
                                            double confidence = 0.8);

}  // namespace proctor
