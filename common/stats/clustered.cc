#include "common/stats/clustered.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "common/base/assert.h"

namespace proctor {

std::optional<ClusteredRate> mean_of_task_means(std::span<const Cluster> tasks, double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  ClusteredRate out;
  double sum = 0;
  for (const Cluster& c : tasks) {
    const std::optional<double> r = rate(c.successes, c.runs);
    if (!r) continue;
    sum += *r;
    ++out.tasks;
  }
  if (out.tasks == 0) return std::nullopt;
  const double n = static_cast<double>(out.tasks);
  out.mean = sum / n;
  if (out.tasks < 2) return out;
  double squares = 0;
  for (const Cluster& c : tasks)
    if (const std::optional<double> r = rate(c.successes, c.runs))
      squares += (*r - out.mean) * (*r - out.mean);
  const double se = std::sqrt(squares / (n - 1) / n);
  out.standard_error = se;
  if (squares == 0) {
    out.interval = wilson_at(out.mean, n, alpha);
    return out;
  }
  const double t =
      boost::math::quantile(boost::math::complement(boost::math::students_t(n - 1), alpha / 2));
  out.interval = Interval{out.mean - t * se, out.mean + t * se};
  return out;
}

std::optional<RatioRate> ratio_rate(std::span<const Cluster> tasks) {
  double runs = 0, successes = 0, with_runs = 0;
  for (const Cluster& c : tasks) {
    PROCTOR_ASSERT(c.successes <= c.runs);
    runs += static_cast<double>(c.runs);
    successes += static_cast<double>(c.successes);
    with_runs += 0 < c.runs ? 1 : 0;
  }
  if (!(0 < runs)) return std::nullopt;
  RatioRate out;
  out.ratio = successes / runs;
  double squares = 0;
  for (const Cluster& c : tasks) {
    const double e = static_cast<double>(c.successes) - static_cast<double>(c.runs) * out.ratio;
    squares += e * e;
  }
  out.cr0 = std::sqrt(squares) / runs;
  if (1 < with_runs) out.cr1 = out.cr0 * std::sqrt(with_runs / (with_runs - 1));
  return out;
}

}  // namespace proctor
