#include "common/stats/bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/assert.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

double real(std::uint64_t x) {
  return static_cast<double>(x);
}

// The C with P(Z <= C + width / s) - P(Z <= -C) = 1 - alpha: from the two-sided quantile where the
// width is 0 down to the one-sided one where it is large.
double critical_value(double width, double s, double alpha) {
  double low = -normal_quantile(alpha), high = normal_quantile_two_sided(alpha);
  for (int i = 0; i < 100; ++i) {
    const double c = (low + high) / 2;
    (normal_cdf(c + width / s) - normal_cdf(-c) < 1 - alpha ? low : high) = c;
  }
  return (low + high) / 2;
}

Bounds around(double low, double high, double s_low, double s_high, double alpha) {
  Bounds out;
  out.identified = {low, high};
  const double s = std::max(s_low, s_high);
  if (!(0 < s)) {
    out.interval = out.identified;
    return out;
  }
  out.critical = critical_value(high - low, s, alpha);
  out.interval = Interval{low - out.critical * s_low, high + out.critical * s_high};
  return out;
}

std::optional<Bounds> over_tasks(const std::vector<double>& low, const std::vector<double>& high,
                                 double alpha) {
  if (low.empty()) return std::nullopt;
  const double mean_low = mean_of(low), mean_high = mean_of(high);
  if (low.size() < 2) return Bounds{{mean_low, mean_high}, std::nullopt, 0};
  const double n = real(low.size());
  return around(mean_low, mean_high, std::sqrt(variance_of(low) / n),
                std::sqrt(variance_of(high) / n), alpha);
}

}  // namespace

std::optional<Bounds> bounds_of_rate(std::span<const PartlyKnown> tasks, double alpha) {
  std::vector<double> low, high;
  for (const PartlyKnown& t : tasks) {
    PROCTOR_ASSERT(t.successes + t.unknown <= t.runs);
    if (t.runs == 0) continue;
    low.push_back(real(t.successes) / real(t.runs));
    high.push_back(real(t.successes + t.unknown) / real(t.runs));
  }
  return over_tasks(low, high, alpha);
}

std::optional<Bounds> bounds_of_difference(std::span<const PartlyKnownPair> tasks, double alpha) {
  std::vector<double> low, high;
  for (const auto& [a, b] : tasks) {
    PROCTOR_ASSERT(0 < a.runs && 0 < b.runs);
    low.push_back(real(a.successes) / real(a.runs) - real(b.successes + b.unknown) / real(b.runs));
    high.push_back(real(a.successes + a.unknown) / real(a.runs) - real(b.successes) / real(b.runs));
  }
  return over_tasks(low, high, alpha);
}

}  // namespace proctor
