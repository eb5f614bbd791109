#pragma once
// Means and variances over tasks, summed in the order given, so that the same data give the same
// bytes.  Pure; thread-safe.
#include <cmath>
#include <cstddef>
#include <span>

namespace proctor {

inline double square(double x) {
  return x * x;
}

inline double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Sum of (x - mean x)(y - mean y), divided by n - 1.  Requires: as many of both, at least two.
inline double covariance_of(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / static_cast<double>(x.size() - 1);
}
inline double variance_of(std::span<const double> values) {
  return covariance_of(values, values);
}

}  // namespace proctor
