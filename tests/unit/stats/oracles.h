#pragma once
// Data of the tests of common/stats, and how near a published figure must be met.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/power_plan.h"

namespace proctor::testing {

// Ten digits were published.
inline doctest::Approx near(double expected, double relative = 2e-9) {
  return doctest::Approx(expected).epsilon(relative);
}

inline void check_interval(const std::optional<Interval>& got, double low, double high,
                           double relative = 2e-9) {
  REQUIRE(got.has_value());
  CHECK(got->low == near(low, relative));
  CHECK(got->high == near(high, relative));
}

// Eight tasks with four runs under each of three methods, and six with unequal runs under two.
inline constexpr std::array<std::uint64_t, 8> kA = {4, 3, 0, 2, 4, 1, 0, 3};
inline constexpr std::array<std::uint64_t, 8> kA1 = {3, 1, 0, 2, 3, 0, 1, 1};
inline std::vector<PairedTask> equal_pairs() {
  std::vector<PairedTask> out;
  for (std::size_t i = 0; i < kA.size(); ++i) out.push_back({{4, kA[i]}, {4, kA1[i]}});
  return out;
}
inline std::vector<PairedTask> unequal_pairs() {
  return {{{4, 4}, {4, 2}}, {{4, 1}, {3, 1}}, {{3, 3}, {3, 2}},
          {{2, 0}, {4, 1}}, {{4, 2}, {2, 1}}, {{1, 1}, {2, 0}}};
}
inline std::vector<Cluster> side_of(const std::vector<PairedTask>& tasks,
                                    Cluster PairedTask::*side) {
  std::vector<Cluster> out;
  for (const PairedTask& t : tasks) out.push_back(t.*side);
  return out;
}
// The variance of one task's difference at each look.
inline std::vector<double> variances_at(const PlannedLooks& looks, Design design) {
  std::vector<double> out;
  for (const std::uint32_t k : looks.after) {
    design.runs = k;
    out.push_back(variance_of_task_difference(design));
  }
  return out;
}

}  // namespace proctor::testing
