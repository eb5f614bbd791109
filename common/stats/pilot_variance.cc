#include "common/stats/pilot_variance.h"

#include <algorithm>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/plan_distributions.h"

namespace proctor {
namespace {

double rate_of(const Cluster& c) {
  return static_cast<double>(c.successes) / static_cast<double>(c.runs);
}

// Of one task's runs, each 0 or 1.
double variance_within(const Cluster& c) {
  const double k = static_cast<double>(c.runs), p = rate_of(c);
  return k * p * (1 - p) / (k - 1);
}

}  // namespace

double PilotVariance::upper_at(std::uint32_t other) const {
  PROCTOR_ASSERT(0 < other && 0 < runs);
  const double k = runs, next = other;
  return std::max(upper - (within_a + within_b) * (1 / k - 1 / next),
                  upper * std::min(1.0, k / next));
}

std::optional<PilotVariance> pilot_variance(std::span<const PairedTask> tasks, double confidence) {
  PROCTOR_ASSERT(0 < confidence && confidence < 1);
  PilotVariance out;
  double sum = 0;
  for (const PairedTask& t : tasks) {
    if (t.a.runs == 0 || t.b.runs == 0) continue;
    if (out.tasks == 0) out.runs = static_cast<std::uint32_t>(t.a.runs);
    if (t.a.runs != out.runs || t.b.runs != out.runs || out.runs < 2) return std::nullopt;
    ++out.tasks;
    sum += rate_of(t.a) - rate_of(t.b);
    out.within_a += variance_within(t.a);
    out.within_b += variance_within(t.b);
  }
  if (out.tasks < 2) return std::nullopt;
  const double n = static_cast<double>(out.tasks), mean = sum / n;
  for (const PairedTask& t : tasks) {
    if (t.a.runs == 0 || t.b.runs == 0) continue;
    const double off = rate_of(t.a) - rate_of(t.b) - mean;
    out.between += off * off / (n - 1);
  }
  out.within_a /= n;
  out.within_b /= n;
  out.upper = (n - 1) * out.between / chi_squared_quantile(1 - confidence, n - 1);
  return out;
}

}  // namespace proctor
