#include "common/stats/variance.h"

#include <algorithm>

#include "common/base/result.h"

namespace proctor {

IntraclassCorrelation intraclass_correlation(std::span<const Cluster> tasks, double alpha) {
  IntraclassCorrelation out;
  double n = 0, runs = 0, won = 0, squares = 0, within = 0, most = 0, least = 0;
  for (const Cluster& c : tasks) {
    PROCTOR_ASSERT(c.successes <= c.runs);
    if (c.runs == 0) continue;
    const double k = static_cast<double>(c.runs), x = static_cast<double>(c.successes);
    least = n == 0 ? k : std::min(least, k);
    most = std::max(most, k);
    n += 1;
    runs += k;
    won += x;
    squares += k * k;
    within += x * (k - x) / k;
  }
  const auto missing = [&](Why why) {
    out.rho.why = why;
    return out;
  };
  if (n == 0) return missing(Why::kNothing);
  if (n < 2) return missing(Why::kOneTask);
  if (!(n < runs)) return missing(Why::kTooFew);
  const double p = won / runs;
  double between = 0;
  for (const Cluster& c : tasks) {
    if (c.runs == 0) continue;
    const double k = static_cast<double>(c.runs), off = static_cast<double>(c.successes) / k - p;
    between += k * off * off;
  }
  out.runs_per_task = (runs - squares / runs) / (n - 1);
  out.between = between / (n - 1);
  out.within = within / (runs - n);
  const double total = out.between + (out.runs_per_task - 1) * out.within;
  if (!(0 < total) || p <= 0 || 1 <= p) return missing(Why::kNoVariance);
  out.rho.value = (out.between - out.within) / total;
  out.fleiss_cuzick = 1 - within / ((runs - n) * p * (1 - p));
  out.design_effect = 1 + (out.runs_per_task - 1) * *out.rho.value;
  if (least == most && 0 < out.within) {
    const double f = out.between / out.within, df1 = n - 1, df2 = runs - n;
    const double low = f / f_quantile(1 - alpha / 2, df1, df2);
    const double high = f / f_quantile(alpha / 2, df1, df2);
    out.rho.interval = Interval{(low - 1) / (low + most - 1), (high - 1) / (high + most - 1)};
  }
  return out;
}

}  // namespace proctor
