#pragma once
// How likely a task is solved when it is tried k times, out of n runs of each task: at least once
// (pass@k, Chen et al. 2021) and every time (pass^k).  Tasks are the units.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {

// 1 - C(n-c, k)/C(n, k), and C(c, k)/C(n, k).  Nothing where n < k.  Requires: c <= n, 1 <= k.
std::optional<double> pass_at_k(const Cluster& task, std::uint64_t k);
std::optional<double> pass_all_k(const Cluster& task, std::uint64_t k);

struct PassEstimate {
  // Student's t over tasks; kNothing where no task has k runs.
  Estimate at_least_one, all;
  std::uint64_t tasks = 0;    // with k runs
  std::uint64_t too_few = 0;  // with less: in neither
};
PassEstimate pass_k(std::span<const Cluster> tasks, std::uint64_t k, double alpha = 0.05);

// Shares of tasks that were solved always, sometimes and never: what stands behind the curve over
// k.
struct Reliability {
  std::uint64_t tasks = 0;  // with runs
  std::uint64_t always = 0, sometimes = 0, never = 0;
};
Reliability reliability(std::span<const Cluster> tasks);

}  // namespace proctor
