#pragma once
// Distributions that only plans need.  Apart from distributions.h, which everything includes that a
// report includes.  Pure; thread-safe.

namespace proctor {

// P(X = x) of n trials with success rate p.  Requires: 0 <= x <= n.
double binomial_chance(double x, double n, double p);

// The x with P(X <= x) = p of chi-squared.  Requires: 0 < p < 1, df > 0.
double chi_squared_quantile(double p, double df);

}  // namespace proctor
