#pragma once
// Tasks that are run again: chances over k tries, and the noise of a repetition.
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"
#include "common/stats/paired.h"

namespace proctor {
// How likely a task is solved when it is tried k times, out of n runs of each task: at least once
// (pass@k, Chen et al. 2021) and every time (pass^k).  Tasks are the units.

// 1 - C(n-c, k)/C(n, k), and C(c, k)/C(n, k).  nullopt where n < k.  Requires: c <= n, 1 <= k.
std::optional<double> pass_at_k(const Cluster& task, std::uint64_t k);
std::optional<double> pass_all_k(const Cluster& task, std::uint64_t k);

struct PassEstimate {
  // Student's t over tasks; kNothing where no task has k runs.
  Estimate at_least_one, all;
  std::uint64_t tasks = 0;    // with k runs
  std::uint64_t too_few = 0;  // with less: in neither
};
PassEstimate pass_k(std::span<const Cluster> tasks, std::uint64_t k, double alpha = 0.05);

// Shares of tasks that were solved always, sometimes and never: the facts behind the curve over k.
struct Reliability {
  std::uint64_t tasks = 0;  // with runs
  std::uint64_t always = 0, sometimes = 0, never = 0;
};
Reliability reliability(std::span<const Cluster> tasks);

// The effect of chance alone where nothing changes: a method that runs again on the same tasks, and
// two methods that are equal at each task.  A gap below that is no finding.

// The floor of noise: how far a method's own rate moves when all its runs are made once more.
struct RerunNoise {
  std::uint64_t tasks = 0;  // with two runs or more; the others count as these do on average
  std::optional<double> standard_error;  // of the rate, the tasks being the same
  std::optional<double> gap95;           // two such rates differ by at most this in 95 of 100 cases
  Why why = Why::kOk;  // kNothing; kTooFew: no task has two runs; kNoVariance: all runs are alike
};
RerunNoise rerun_noise(std::span<const Cluster> tasks, Weighing weighing = Weighing::kTasks);

// Lattice points times runs: beyond it the normal approximation answers, labelled so.
inline constexpr std::uint64_t kEqualGapSteps = std::uint64_t{1} << 27;

// Were the two methods of each pair equal, it would be chance which runs of a task are whose: the
// successes of the first are hypergeometric, and the difference of the rates is their convolution.
struct EqualGap {
  double gap95 = 0;    // the least that chance exceeds in at most 5 of 100 cases
  double p = 1;        // that chance alone differs at least as much as was seen
  bool exact = false;  // by convolution
};
// nullopt without a task.  Requires: runs > 0 on both sides.
std::optional<EqualGap> gap_of_equals(std::span<const PairedTask> tasks,
                                      Weighing weighing = Weighing::kTasks);
}  // namespace proctor
