#include "common/stats/survival.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {

// What happened at one time, and how many runs were still there just before.
struct Tick {
  double at = 0;
  double at_risk = 0;
  double successes = 0, failures = 0, censored = 0;
  double events() const { return successes + failures; }
};

std::vector<Tick> ticks_of(std::span<const Lifetime> runs) {
  std::vector<Lifetime> sorted(runs.begin(), runs.end());
  std::ranges::sort(sorted, {}, &Lifetime::at);
  std::vector<Tick> out;
  double left = static_cast<double>(sorted.size());
  for (const Lifetime& run : sorted) {
    PROCTOR_ASSERT(0 <= run.at);
    if (out.empty() || out.back().at < run.at) {
      if (!out.empty()) left -= out.back().events() + out.back().censored;
      out.push_back({run.at, left});
    }
    Tick& tick = out.back();
    tick.successes += run.ending == Ending::kSuccess ? 1 : 0;
    tick.failures += run.ending == Ending::kFailure ? 1 : 0;
    tick.censored += run.ending == Ending::kCensored ? 1 : 0;
  }
  return out;
}

// Kalbfleisch and Prentice's interval on log(-log), whose ends stay between 0 and 1.
std::optional<Interval> log_log(double value, double error, double alpha) {
  if (value <= 0 || 1 <= value || !(0 < error)) return std::nullopt;
  const double log_value = std::log(value), centre = std::log(-log_value);
  const double half = normal_quantile_two_sided(alpha) * error / value / std::fabs(log_value);
  return Interval{std::exp(-std::exp(centre + half)), std::exp(-std::exp(centre - half))};
}

}  // namespace

std::vector<CurvePoint> cumulative_incidence(std::span<const Lifetime> runs, double alpha) {
  std::vector<CurvePoint> out;
  // Var F(t) is a sum over earlier times u of (F(t) - F(u))^2 g + s^2 h - 2 (F(t) - F(u)) s k: with
  // the powers of F(u) summed apart, each time costs the same.
  double survival = 1, incidence = 0;
  double g0 = 0, g1 = 0, g2 = 0, own = 0, k0 = 0, k1 = 0;
  for (const Tick& tick : ticks_of(runs)) {
    if (tick.events() == 0) continue;
    const double n = tick.at_risk, d = tick.events(), d1 = tick.successes;
    incidence += survival * d1 / n;
    const double f = incidence, g = d < n ? d / (n * (n - d)) : 0, k = survival * d1 / (n * n);
    g0 += g;
    g1 += g * f;
    g2 += g * f * f;
    own += survival * survival * d1 * (n - d1) / (n * n * n);
    k0 += k;
    k1 += k * f;
    const double variance = f * f * g0 - 2 * f * g1 + g2 + own - 2 * (f * k0 - k1);
    survival *= 1 - d / n;
    if (d1 == 0) continue;
    const double error = std::sqrt(std::max(0.0, variance));
    out.push_back({tick.at, f, error, static_cast<std::uint64_t>(n), log_log(f, error, alpha)});
  }
  return out;
}

const CurvePoint* at(std::span<const CurvePoint> curve, double t) {
  const auto after = std::ranges::upper_bound(curve, t, {}, &CurvePoint::at);
  return after == curve.begin() ? nullptr : &*(after - 1);
}

}  // namespace proctor
