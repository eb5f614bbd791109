#pragma once
// Differences between two methods.  The unit is the task: each task that both methods tried gives
// one pair, and runs of one task are never counted as independent.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {

// One task under both methods.  Requires everywhere: runs > 0 on both sides.
struct PairedTask {
  Cluster a, b;
};

// Mean of the tasks' differences a - b, with Student's t over tasks.  kNotPaired: no task;
// kOneTask: value alone; kNoVariance: all differences are equal, standard error 0, no interval.
struct Difference {
  Estimate estimate;
  std::optional<double> p;  // two-sided t-test of no difference
};
Difference mean_difference(std::span<const double> differences, double alpha = 0.05);
Difference paired_difference(std::span<const PairedTask> tasks, double alpha = 0.05);

// The same for the ratio estimand (every run counts equally), by linearization.
Difference paired_ratio_difference(std::span<const PairedTask> tasks, double alpha = 0.05);

// Two one-sided t-tests at +-margin: the p of "the difference lies within", and the 1 - 2 alpha
// interval whose lying inside is the same decision (Schuirmann 1987).  Nothing without a variance.
struct Equivalence {
  double p_equivalent = 1;
  double p_non_inferior = 1;  // of "a is not worse than b by the margin"
  Interval interval;
};
std::optional<Equivalence> equivalence(std::span<const double> differences, double margin,
                                       double alpha = 0.05);

// An interval that respects [-1, 1], from the Wilson intervals of both sides at their effective
// sizes and the correlation over tasks (Zou & Donner 2008, MOVER).  For exploratory rows with few
// tasks: it may be narrower than Student's t.
Estimate bounded_difference(std::span<const PairedTask> tasks, double alpha = 0.05);

// Success rate of a over that of b, with Student's t on the logarithm.  kNoSuccess: b has none.
Estimate risk_ratio(std::span<const PairedTask> tasks, double alpha = 0.05);

// One run per task: how many pairs of outcomes there are of each kind.
struct PairCounts {
  std::uint64_t both = 0, only_a = 0, only_b = 0, neither = 0;
};
// McNemar's exact test, two-sided, of the discordant pairs; 1 where no task separates the methods.
double mcnemar_exact(const PairCounts& n);
// Half of the probability of what was seen counts; 1 where both sides have as many.
double mcnemar_mid_p(const PairCounts& n);
// Conditional odds ratio only_a / only_b with Clopper and Pearson's limits.  `high` missing:
// unbounded; nothing where no task separates the methods.
struct OddsRatio {
  std::optional<double> value;  // nothing: unbounded
  double low = 0;
  std::optional<double> high;
};
std::optional<OddsRatio> mcnemar_odds_ratio(const PairCounts& n, double alpha = 0.05);
// Newcombe's paired method 10 (1998).  kNothing: no pair.
Estimate newcombe_paired(const PairCounts& n, double alpha = 0.05);

// Methods that did not try the same tasks: Welch's t on task means, Satterthwaite's degrees.
Difference unpaired_difference(std::span<const double> a, std::span<const double> b,
                               double alpha = 0.05);
// Of two rates of independent trials, one run a task: Newcombe's method 10, and the score interval
// of Miettinen and Nurminen (1985).  Requires: x <= n, 0 < n.
Interval newcombe_unpaired(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                           double alpha = 0.05);
Interval miettinen_nurminen(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                            double alpha = 0.05);
// Ratio of the two rates, Katz's interval on the logarithm.  kNoSuccess where either has none.
Estimate katz_ratio(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                    double alpha = 0.05);

}  // namespace proctor
