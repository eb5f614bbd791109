#pragma once
// The sign-flip permutation test of paired differences, exact for campaigns of usual size.  Under
// "no difference" the sign of each task's difference is free, so the distribution of their sum is a
// convolution of two-point steps on a lattice.  Pure; thread-safe.
#include <cstdint>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

// Tasks times the sum of |differences|: beyond it the normal approximation answers, labelled so.
inline constexpr std::uint64_t kSignFlipSteps = std::uint64_t{1} << 27;

// `differences`: of the tasks, all multiplied by one integer so that they are whole.  The statistic
// is their sum; p counts sums at least as far from 0, two-sided.  Zeros change nothing.
Significance sign_flip(std::span<const std::int64_t> differences);

}  // namespace proctor
