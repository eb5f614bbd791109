#pragma once
// Power of the test that a report's verdict follows: signs of the tasks' differences flipped.
// Exact: every data set that a campaign can have, with its chance.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

namespace proctor {

// The smallest p that so many tasks can come to, both sides counted: all differ, and all one way.
double least_flip_p(std::uint64_t tasks);
// The fewest tasks whose smallest p is at most `level`.  Requires: 0 < level.
std::uint64_t fewest_flip_tasks(double level);

// Beyond so many sums of so many sorts of data sets it is not computed.
inline constexpr std::uint64_t kMostFlipSums = 2'000'000;
bool flip_power_is_short(std::uint64_t tasks, std::uint32_t runs);

// The chance of a p of at most `level`.  `chances`: of difference_chances().  Nothing: it would
// take too long.  Requires: 1 <= tasks.
std::optional<double> exact_power_flips(std::span<const double> chances, std::uint64_t tasks,
                                        double level);

}  // namespace proctor
