#pragma once
// The sign-flip permutation test of paired differences, exact for campaigns of usual size.  Under
// "no difference" the sign of each task's difference is free, so the distribution of their sum is a
// convolution of two-point steps on a lattice.  Pure; thread-safe.
#include <cstdint>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {

// Tasks times the sum of |differences|: beyond it the normal approximation answers, labelled so.
inline constexpr std::uint64_t kSignFlipSteps = std::uint64_t{1} << 27;

// `differences`: of the tasks, all multiplied by one integer so that they are whole.  The statistic
// is their sum; p counts sums at least as far from 0, two-sided.  Zeros change nothing.
Significance sign_flip(std::span<const std::int64_t> differences);

// Where the same differences are asked about with different others, over and over: their sums are
// convolved once, and those of the others each time.
class SignFlips {
 public:
  void add(std::span<const std::int64_t> differences);
  // What sign_flip says of these differences and the others together.
  Significance with(std::span<const std::int64_t> others) const;

 private:
  std::vector<double> chance_{1.0};    // of each sum of those taken as plus
  std::vector<double> at_least_{1.0};  // of that sum or a larger one
  std::int64_t seen_ = 0;
  std::uint64_t reach_ = 0, steps_ = 0;
  double squares_ = 0;
  bool is_exact_ = true;  // no sum was left out because there are too many
};

}  // namespace proctor
