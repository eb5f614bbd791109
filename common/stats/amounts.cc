#include "common/stats/amounts.h"

#include <algorithm>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/clustered.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {
template <class T>
std::optional<double> type7(std::vector<T> values, double q) {
  PROCTOR_ASSERT(0 <= q && q <= 1);
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double low = static_cast<double>(values[below]);
  return low + (at - static_cast<double>(below)) * (static_cast<double>(values[above]) - low);
}

// Ranks l < u such that fewer than l, or at least u, of n values lie below the quantile with at
// most alpha / 2 each.
QuantileEstimate by_order_statistics(std::vector<double> values, double q, double alpha) {
  QuantileEstimate out;
  out.estimate.value = real_quantile(values, q);
  std::ranges::sort(values);
  const double n = static_cast<double>(values.size());
  double low = 0;
  while (low < n && binomial_cdf(low, n, q) <= alpha / 2) low += 1;
  double high = n;
  while (0 < high && 1 - binomial_cdf(high - 1, n, q) <= alpha / 2) high -= 1;
  // Ranks count from 1: `low` values may lie below, `high` + 1 is the first rank that is too high.
  if (low < 1 || n < high + 1) {
    out.estimate.why = Why::kTooFew;
    return out;
  }
  out.estimate.interval =
      Interval{values[static_cast<std::size_t>(low) - 1], values[static_cast<std::size_t>(high)]};
  return out;
}
}  // namespace

std::optional<double> quantile(std::vector<std::uint64_t> values, double q) {
  return type7(std::move(values), q);
}

std::optional<double> real_quantile(std::vector<double> values, double q) {
  return type7(std::move(values), q);
}

QuantileEstimate quantile_over_tasks(std::span<const std::vector<double>> tasks, double q,
                                     double alpha) {
  QuantileEstimate out;
  std::vector<double> all;
  std::size_t with_runs = 0;
  for (const std::vector<double>& task : tasks) {
    all.insert(all.end(), task.begin(), task.end());
    with_runs += task.empty() ? 0 : 1;
  }
  if (all.empty()) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  if (with_runs == 1) return by_order_statistics(std::move(all), q, alpha);
  out.estimate.value = real_quantile(all, q);
  std::vector<Cluster> up_to;
  for (const std::vector<double>& task : tasks) {
    Cluster c{task.size(), 0};
    for (const double value : task) c.successes += value <= *out.estimate.value ? 1 : 0;
    up_to.push_back(c);
  }
  const std::optional<RatioRate> share = ratio_rate(up_to, alpha);
  if (!share || !(0 < share->cr1.value_or(0))) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  out.estimate.standard_error = share->cr1;
  out.estimate.df = static_cast<double>(with_runs - 1);
  const double half = t_quantile_two_sided(alpha, *out.estimate.df) * *share->cr1;
  out.shares = Interval{std::max(0.0, q - half), std::min(1.0, q + half)};
  out.estimate.interval =
      Interval{*real_quantile(all, out.shares->low), *real_quantile(all, out.shares->high)};
  return out;
}

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

CostPerSuccess cost_per_success(std::span<const CostOfTask> tasks, double alpha) {
  CostPerSuccess out;
  std::vector<double> costs, successes;
  double cost = 0, success = 0;
  for (const CostOfTask& t : tasks) {
    costs.push_back(t.cost);
    successes.push_back(t.successes);
    cost += t.cost;
    success += t.successes;
  }
  if (tasks.empty() || !(0 < success)) {
    out.estimate.why = tasks.empty() ? Why::kNothing : Why::kNoSuccess;
    return out;
  }
  const double ratio = cost / success;
  out.estimate.value = ratio;
  if (tasks.size() < 2) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  const double n = static_cast<double>(tasks.size()), t = t_quantile_two_sided(alpha, n - 1);
  const double mean_c = cost / n, mean_s = success / n;
  const double var_c = variance_of(costs) / n, var_s = variance_of(successes) / n;
  const double covariance = covariance_of(costs, successes) / n;

  // Ratios r with (mean_c - r mean_s)^2 <= t^2 var(c - r s): a r^2 + b r + d <= 0.
  const double a = mean_s * mean_s - t * t * var_s;
  const double b = -2 * (mean_c * mean_s - t * t * covariance);
  const double d = mean_c * mean_c - t * t * var_c;
  const double root = b * b - 4 * a * d;
  out.estimate.df = n - 1;
  if (0 < a && 0 <= root) {
    out.estimate.interval =
        Interval{(-b - std::sqrt(root)) / (2 * a), (-b + std::sqrt(root)) / (2 * a)};
    return out;
  }
  out.estimate.why = Why::kUnbounded;
  // The set is the complement of the interval between the roots.  It holds the ratio itself: above
  // the larger root that one bounds it from below, and below the smaller one nothing above 0 does.
  if (a < 0 && 0 < root) {
    const double end = (-b - std::sqrt(root)) / (2 * a);
    if (0 < end && end <= ratio) out.low = end;
  }
  return out;
}

IncrementalCost incremental_cost(std::span<const CostPair> tasks, double alpha) {
  std::vector<double> cost, success;
  std::vector<CostOfTask> difference;
  for (const CostPair& t : tasks) {
    cost.push_back(t.a.cost - t.b.cost);
    success.push_back(t.a.successes - t.b.successes);
    difference.push_back({cost.back(), success.back()});
  }
  IncrementalCost out;
  out.cost = mean_difference(cost, alpha).estimate;
  out.success = mean_difference(success, alpha).estimate;
  // Rates that sum to the same are not equal to the last bit.
  constexpr double kNone = 1e-12;
  if (out.success.value && std::fabs(*out.success.value) < kNone) out.success.value = 0;
  if (out.cost.value.value_or(0) <= 0 || out.success.value.value_or(0) <= 0) {
    out.ratio.estimate.why = tasks.empty() ? Why::kNotPaired : Why::kNotDefined;
    return out;
  }
  out.ratio = cost_per_success(difference, alpha);
  // A finite lower end speaks of costs that are not negative; a difference may be.
  out.ratio.low.reset();
  return out;
}

namespace {
__extension__ typedef __int128 Wide;

bool dominates(const CostQuality& a, const CostQuality& b) {
  return !(b.cost < a.cost) && !(a.success < b.success) &&
         (a.cost < b.cost || b.success < a.success);
}
}  // namespace

bool operator<(const Quotient& x, const Quotient& y) {
  return Wide{x.part} * y.whole < Wide{y.part} * x.whole;
}

std::vector<bool> frontier(std::span<const CostQuality> methods) {
  std::vector<bool> out;
  for (const CostQuality& m : methods)
    out.push_back(std::ranges::none_of(
        methods, [&](const CostQuality& other) { return dominates(other, m); }));
  return out;
}

std::vector<double> frontier_shares(std::span<const CostQuality> replicates, std::size_t methods) {
  PROCTOR_ASSERT(0 < methods && !replicates.empty() && replicates.size() % methods == 0);
  std::vector<double> out(methods, 0.0);
  for (std::size_t b = 0; b < replicates.size(); b += methods) {
    const std::vector<bool> on = frontier(replicates.subspan(b, methods));
    for (std::size_t m = 0; m < methods; ++m) out[m] += on[m] ? 1 : 0;
  }
  for (double& share : out) share /= static_cast<double>(replicates.size() / methods);
  return out;
}
}  // namespace proctor
