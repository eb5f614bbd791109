#pragma once
// Sum of weight x value over tasks: the inner loop of resampling.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>

namespace proctor {

// Requires: |values| < 2^15; weights as one of the laws of resample.h draws them, or of 0 and 1.
using WeightedSum = std::int64_t(const std::int16_t* weights, const std::int16_t* values,
                                 std::size_t count);
std::int64_t weighted_sum_plain(const std::int16_t* weights, const std::int16_t* values,
                                std::size_t count);
// By the vector instructions of this machine, where it has some that are known here.
WeightedSum* best_weighted_sum();

}  // namespace proctor
