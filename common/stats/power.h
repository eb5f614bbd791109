#pragma once
// How many tasks show a difference, and which difference so many tasks show, before money is spent.
// Never of the observed effect: that says nothing which the p-value did not say (Hoenig & Heisey
// 2001).  Pure; thread-safe.
#include <cstdint>
#include <optional>

namespace proctor {

// What is assumed of a paired comparison of two success rates.
struct Design {
  double p_a = 0.5, p_b = 0.4;  // success rates
  double icc = 0.5;             // how alike runs of one task are, within a method
  double correlation = 0.5;     // of the methods' rates over tasks
  double runs = 1;              // per task and method
  double alpha = 0.05;          // two-sided
};

// Of one task's difference.  Requires: rates in [0, 1], 0 <= icc <= 1, |correlation| <= 1, runs
// >= 1.
double variance_of_task_difference(const Design& design);

// Tasks for this power, by the normal distribution, and by the non-central t that few tasks need.
// Nothing where p_a equals p_b or more than `kMostPlannedTasks` would be needed.
inline constexpr std::uint64_t kMostPlannedTasks = std::uint64_t{1} << 20U;
std::optional<std::uint64_t> tasks_for_power(const Design& design, double power);
std::optional<std::uint64_t> tasks_for_power_t(const Design& design, double power);

// Of a known variance of one task's difference, whatever it came from.
double power_by_variance(double difference, double variance, std::uint64_t tasks, double alpha);
double power_by_variance_t(double difference, double variance, std::uint64_t tasks, double alpha);
// Not rounded.  Requires: the difference is not 0.
double tasks_by_variance(double difference, double variance, double alpha, double power);

double power_of(const Design& design, std::uint64_t tasks);
double power_of_t(const Design& design, std::uint64_t tasks);  // requires: 2 <= tasks

// The smallest difference that so many tasks show with this power, at the variance of the design.
double detectable_difference(const Design& design, std::uint64_t tasks, double power);

// The smallest difference that data with this standard error could have shown: by two quantiles of
// Student's t, and exactly by the non-central t.
double detectable_by_error(double standard_error, double df, double power = 0.8,
                           double alpha = 0.05);
double detectable_by_error_t(double standard_error, double df, double power = 0.8,
                             double alpha = 0.05);

}  // namespace proctor
