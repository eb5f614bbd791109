#pragma once
// How many tasks show a difference, and how probably so many tasks show it, before money is spent.
// Never of the observed effect: that says nothing which the p-value did not say (Hoenig & Heisey
// 2001).  Pure; thread-safe.
#include <cstdint>

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

// Of a known variance of one task's difference, whatever it came from.
double power_by_variance(double difference, double variance, std::uint64_t tasks, double alpha);
double power_by_variance_t(double difference, double variance, std::uint64_t tasks, double alpha);
// Not rounded.  Requires: the difference is not 0.
double tasks_by_variance(double difference, double variance, double alpha, double power);

double power_of(const Design& design, std::uint64_t tasks);
double power_of_t(const Design& design, std::uint64_t tasks);  // requires: 2 <= tasks

}  // namespace proctor
