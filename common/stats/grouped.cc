#include "common/stats/grouped.h"

#include <cmath>
#include <map>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {

GroupedMean grouped_mean(std::span<const double> values, std::span<const std::uint32_t> group,
                         double alpha) {
  PROCTOR_ASSERT(values.size() == group.size());
  GroupedMean out;
  if (values.empty()) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  const double n = static_cast<double>(values.size()), mean = mean_of(values);
  out.estimate.value = mean;
  struct Group {
    double size = 0, residual = 0;
  };
  std::map<std::uint32_t, Group> groups;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Group& g = groups[group[i]];
    g.size += 1;
    g.residual += values[i] - mean;
  }
  out.groups = groups.size();
  if (out.groups < 2) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  double squares = 0, weights = 0, shrunk = 0, shrunk_squares = 0;
  for (const auto& [name, g] : groups) {
    const double w = g.size / n, q = w * w / (1 - w);
    squares += square(g.residual) / (1 - w);
    weights += w * w;
    shrunk += q;
    shrunk_squares += q * q;
  }
  out.estimate.standard_error = std::sqrt(squares) / n;
  out.estimate.df = 1 / (weights + square(shrunk) - shrunk_squares);
  // Residuals of equal values are not 0 to the last bit.
  constexpr double kNone = 1e-14;
  if (*out.estimate.standard_error <= kNone) {
    out.estimate.standard_error = 0;
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  const double reach = t_quantile_two_sided(alpha, *out.estimate.df) * *out.estimate.standard_error;
  out.estimate.interval = Interval{mean - reach, mean + reach};
  out.p = t_two_sided(mean / *out.estimate.standard_error, *out.estimate.df);
  return out;
}

}  // namespace proctor
