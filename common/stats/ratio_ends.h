#pragma once
// Intervals of all successes over all runs that hold near 0 and 1, as near_ends() has them of a
// mean of task means.  Pure; thread-safe.
#include <optional>
#include <span>

#include "common/stats/clustered.h"

namespace proctor {

// By the ratio's CR2 error and its degrees of freedom.  Over the tasks where these do not differ,
// or no spread can be had.  Nothing: no task has a run.
std::optional<NearEnds> ratio_ends(std::span<const Cluster> tasks, double alpha = 0.05);

}  // namespace proctor
