#pragma once
// Power without an approximation: every data set that a campaign can have, with its chance.  Pure;
// thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/task_model.h"

namespace proctor {

struct ExactPower {
  double power = 0;
  double total = 1;  // of all chances: how much rounding cost
};

// Of the paired t test over tasks, by the joint law of the sum of their differences and of its
// squares.  Nothing: more than kMostExactCells sums would have to be told apart.
inline constexpr std::uint64_t kMostExactCells = std::uint64_t{1} << 24U;
std::uint64_t exact_cells(std::uint64_t tasks, std::uint32_t runs);
// `chances`: of difference_chances().  Requires: 2 <= tasks.
std::optional<ExactPower> exact_power_t(std::span<const double> chances, std::uint64_t tasks,
                                        double alpha);

// Tasks for McNemar's test of one run a task (Connor 1987), not rounded.  Requires: the sides
// differ.
double mcnemar_tasks(const Discordance& d, double alpha, double power);
// Power of the exact test and of the mid-p test of so many tasks.
struct McNemarPower {
  double exact = 0, mid_p = 0;
};
McNemarPower mcnemar_power(const Discordance& d, std::uint64_t tasks, double alpha);

}  // namespace proctor
