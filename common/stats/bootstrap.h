#pragma once
// Intervals from replicates of a statistic: Efron's percentile and his BCa (1987).  Pure;
// thread-safe.
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "common/stats/interval.h"

namespace proctor {

// Below this many tasks a report shows a bootstrap interval only beside the one by Student's t.
inline constexpr std::size_t kBootstrapTasks = 20;

// One end may be beyond every number: the cost of a success that replicates do not have.
struct OpenInterval {
  double low = 0;
  std::optional<double> high;  // nothing: unbounded
};

struct Bootstrapped {
  // Over the replicates, n - 1 below the root.  Nothing where one of them is unbounded.
  std::optional<double> mean, deviation;
  std::optional<OpenInterval> percentile;  // nothing: no replicate, or all of them unbounded
  // Nothing: no bias can be estimated, for all replicates lie on one side or the tasks say the
  // same.
  std::optional<OpenInterval> bca;
  std::optional<double> bias, acceleration;  // z0 and a
};

// `observed`: the statistic of the data.  `replicates`: those with a value; `unbounded` more have
// none above.  `jackknife`: the statistic without each task in turn.  Replicates that equal the
// observed value count half: both are to be divisions of exact whole numbers, so that equal ratios
// are equal doubles.
Bootstrapped bootstrap_intervals(double observed, std::span<const double> replicates,
                                 std::size_t unbounded, std::span<const double> jackknife,
                                 double alpha = 0.05);

}  // namespace proctor
