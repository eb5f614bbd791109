#pragma once
// One estimate over strata with registered weights (Cochran 1977): the weights say what the
// campaign speaks for, and are never renormalised in silence.  Pure; thread-safe.
#include <optional>
#include <span>
#include <vector>

#include "common/stats/interval.h"

namespace proctor {

// The tasks' values (rates, or differences of two methods) of one stratum.
struct Stratum {
  double weight = 0;
  std::vector<double> values;
};

struct Stratified {
  // Sum of weight times mean, with Satterthwaite's degrees.  kNothing: a stratum with a weight has
  // no task, so there is no estimate; kOneTask: one has a single task, so there is no error.
  Estimate estimate;
  // Where the numbers of tasks per stratum were not fixed beforehand.
  std::optional<double> post_stratified_error;
};
// Requires: weights >= 0.  A stratum of weight 0 is left out.
Stratified stratified_mean(std::span<const Stratum> strata, double alpha = 0.05);

// How many equally weighted tasks the weights are worth, and what that costs (Kish 1965).
// Requires: weights >= 0, at least one of them > 0.
struct Kish {
  double effective_n = 0;
  double design_effect = 1;
};
Kish kish(std::span<const double> task_weights);

}  // namespace proctor
