#include "common/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/assert.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

double rate_of(const Cluster& c) {
  PROCTOR_ASSERT(0 < c.runs && c.successes <= c.runs);
  return static_cast<double>(c.successes) / static_cast<double>(c.runs);
}

struct Rates {
  std::vector<double> a, b, difference;
};
Rates rates_of(std::span<const PairedTask> tasks) {
  Rates out;
  for (const PairedTask& t : tasks) {
    out.a.push_back(rate_of(t.a));
    out.b.push_back(rate_of(t.b));
    out.difference.push_back(out.a.back() - out.b.back());
  }
  return out;
}

// A value with this standard error over n tasks.
Difference with_t(double value, double se, double df, double alpha) {
  Difference out;
  out.estimate.value = value;
  out.estimate.standard_error = se;
  if (!(0 < se)) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  out.estimate.df = df;
  const double half = t_quantile_two_sided(alpha, df) * se;
  out.estimate.interval = Interval{value - half, value + half};
  out.p = t_two_sided(value / se, df);
  return out;
}

Difference missing(Why why) {
  Difference out;
  out.estimate.why = why;
  return out;
}

std::vector<Cluster> side(std::span<const PairedTask> tasks, Cluster PairedTask::*which) {
  std::vector<Cluster> out;
  for (const PairedTask& t : tasks) out.push_back(t.*which);
  return out;
}

// The limits of a difference from the limits of both sides and their correlation.
Interval mover(double pa, const Interval& a, double pb, const Interval& b, double r) {
  const double d = pa - pb;
  const double below =
      square(pa - a.low) - 2 * r * (pa - a.low) * (b.high - pb) + square(b.high - pb);
  const double above =
      square(a.high - pa) - 2 * r * (a.high - pa) * (pb - b.low) + square(pb - b.low);
  return {d - std::sqrt(std::max(0.0, below)), d + std::sqrt(std::max(0.0, above))};
}

}  // namespace

Difference mean_difference(std::span<const double> differences, double alpha) {
  if (differences.empty()) return missing(Why::kNotPaired);
  const double n = static_cast<double>(differences.size()), mean = mean_of(differences);
  if (n < 2) {
    Difference out = missing(Why::kOneTask);
    out.estimate.value = mean;
    return out;
  }
  const bool equal =
      std::ranges::all_of(differences, [&](double d) { return d == differences[0]; });
  const double se = equal ? 0 : std::sqrt(variance_of(differences) / n);
  return with_t(equal ? differences[0] : mean, se, n - 1, alpha);
}

Difference paired_difference(std::span<const PairedTask> tasks, double alpha) {
  return mean_difference(rates_of(tasks).difference, alpha);
}

Difference paired_ratio_difference(std::span<const PairedTask> tasks, double alpha) {
  if (tasks.empty()) return missing(Why::kNotPaired);
  double runs_a = 0, runs_b = 0, won_a = 0, won_b = 0;
  for (const PairedTask& t : tasks) {
    PROCTOR_ASSERT(0 < t.a.runs && 0 < t.b.runs);
    runs_a += static_cast<double>(t.a.runs);
    runs_b += static_cast<double>(t.b.runs);
    won_a += static_cast<double>(t.a.successes);
    won_b += static_cast<double>(t.b.successes);
  }
  const double pa = won_a / runs_a, pb = won_b / runs_b;
  const double n = static_cast<double>(tasks.size());
  if (n < 2) {
    Difference out = missing(Why::kOneTask);
    out.estimate.value = pa - pb;
    return out;
  }
  double squares = 0;
  for (const PairedTask& t : tasks) {
    // Whole numbers first, so that tasks that are all alike have residuals of exactly 0.
    const auto residual = [](const Cluster& c, double won, double runs) {
      return (static_cast<double>(c.successes) * runs - static_cast<double>(c.runs) * won) /
             (runs * runs);
    };
    squares += square(residual(t.a, won_a, runs_a) - residual(t.b, won_b, runs_b));
  }
  return with_t(pa - pb, std::sqrt(n / (n - 1) * squares), n - 1, alpha);
}

std::optional<Equivalence> equivalence(std::span<const double> differences, double margin,
                                       double alpha) {
  PROCTOR_ASSERT(0 < margin && 0 < alpha && alpha < 0.5);
  const Difference d = mean_difference(differences, 2 * alpha);
  if (!d.estimate.interval) return std::nullopt;
  const double se = *d.estimate.standard_error, df = *d.estimate.df, value = *d.estimate.value;
  Equivalence out;
  out.p_non_inferior = t_upper_tail((value + margin) / se, df);
  out.p_equivalent = std::max(out.p_non_inferior, t_upper_tail((margin - value) / se, df));
  out.interval = *d.estimate.interval;
  return out;
}

Estimate bounded_difference(std::span<const PairedTask> tasks, double alpha) {
  Estimate out;
  if (tasks.empty()) {
    out.why = Why::kNotPaired;
    return out;
  }
  const Rates rates = rates_of(tasks);
  const double pa = mean_of(rates.a), pb = mean_of(rates.b);
  out.value = pa - pb;
  if (tasks.size() < 2) {
    out.why = Why::kOneTask;
    return out;
  }
  const double spread = variance_of(rates.a) * variance_of(rates.b);
  const double r = 0 < spread ? covariance_of(rates.a, rates.b) / std::sqrt(spread) : 0;
  out.interval = mover(pa, near_ends(side(tasks, &PairedTask::a), alpha)->wilson, pb,
                       near_ends(side(tasks, &PairedTask::b), alpha)->wilson, r);
  return out;
}

Estimate risk_ratio(std::span<const PairedTask> tasks, double alpha) {
  Estimate out;
  if (tasks.empty()) {
    out.why = Why::kNotPaired;
    return out;
  }
  const Rates rates = rates_of(tasks);
  const double pa = mean_of(rates.a), pb = mean_of(rates.b);
  if (!(0 < pb)) {
    out.why = Why::kNoSuccess;
    return out;
  }
  out.value = pa / pb;
  if (!(0 < pa)) {
    out.why = Why::kNoSuccess;
    return out;
  }
  const double n = static_cast<double>(tasks.size());
  if (n < 2) {
    out.why = Why::kOneTask;
    return out;
  }
  double squares = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    squares += square(rates.a[i] / (n * pa) - rates.b[i] / (n * pb));
  const double se = std::sqrt(n / (n - 1) * squares);
  out.standard_error = se;  // of the logarithm
  if (!(0 < se)) {
    out.why = Why::kNoVariance;
    return out;
  }
  out.df = n - 1;
  const double factor = std::exp(t_quantile_two_sided(alpha, n - 1) * se);
  out.interval = Interval{*out.value / factor, *out.value * factor};
  return out;
}

double mcnemar_exact(const PairCounts& n) {
  const double all = static_cast<double>(n.only_a + n.only_b);
  if (!(0 < all)) return 1;
  const double fewer = static_cast<double>(std::min(n.only_a, n.only_b));
  return std::min(1.0, 2 * binomial_cdf(fewer, all, 0.5));
}

double mcnemar_mid_p(const PairCounts& n) {
  if (n.only_a == n.only_b) return 1;
  const double all = static_cast<double>(n.only_a + n.only_b);
  const double fewer = static_cast<double>(std::min(n.only_a, n.only_b));
  const double up_to = binomial_cdf(fewer, all, 0.5);
  const double below = 0 < fewer ? binomial_cdf(fewer - 1, all, 0.5) : 0;
  return std::min(1.0, up_to + below);
}

std::optional<OddsRatio> mcnemar_odds_ratio(const PairCounts& n, double alpha) {
  const std::uint64_t all = n.only_a + n.only_b;
  if (all == 0) return std::nullopt;
  const Interval share = *clopper_pearson(n.only_a, all, alpha);
  OddsRatio out;
  out.low = share.low / (1 - share.low);
  if (share.high < 1) out.high = share.high / (1 - share.high);
  if (0 < n.only_b) out.value = static_cast<double>(n.only_a) / static_cast<double>(n.only_b);
  return out;
}

Estimate newcombe_paired(const PairCounts& n, double alpha) {
  Estimate out;
  const std::uint64_t all = n.both + n.only_a + n.only_b + n.neither;
  if (all == 0) {
    out.why = Why::kNothing;
    return out;
  }
  const auto real = [](std::uint64_t x) { return static_cast<double>(x); };
  const double won_a = real(n.both + n.only_a), won_b = real(n.both + n.only_b);
  const double lost_a = real(all) - won_a, lost_b = real(all) - won_b;
  const double product = won_a * lost_a * won_b * lost_b;
  double excess = real(n.both) * real(n.neither) - real(n.only_a) * real(n.only_b);
  // Newcombe's correction for continuity of a positive correlation.
  if (0 < excess) excess = std::max(excess - real(all) / 2, 0.0);
  const double phi = 0 < product ? excess / std::sqrt(product) : 0;
  const double pa = won_a / real(all), pb = won_b / real(all);
  out.value = pa - pb;
  out.interval = mover(pa, *wilson(n.both + n.only_a, all, alpha), pb,
                       *wilson(n.both + n.only_b, all, alpha), phi);
  return out;
}

}  // namespace proctor
