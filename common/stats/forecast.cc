#include "common/stats/forecast.h"

#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {

Estimate forecast(std::span<const RunsLeft> groups, double slots, double alpha) {
  PROCTOR_ASSERT(0 < slots);
  double sum = 0, variance = 0;
  for (const RunsLeft& g : groups) {
    if (!(0 < g.left)) continue;
    PROCTOR_ASSERT(0 <= g.deviation && 0 < g.seen.value_or(1));
    sum += g.left * g.mean;
    variance += g.left * square(g.deviation) * (1 + (g.seen ? g.left / *g.seen : 0));
  }
  Estimate out;
  out.value = sum / slots;
  out.standard_error = std::sqrt(variance) / slots;
  const double half = normal_quantile_two_sided(alpha) * *out.standard_error;
  out.interval = Interval{*out.value - half, *out.value + half};
  return out;
}

}  // namespace proctor
