#include "common/stats/task_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/plan_distributions.h"

namespace proctor {
namespace {

double spread(double p) {
  return p * (1 - p);
}

std::vector<double> binomial_chances(std::uint32_t n, double p) {
  std::vector<double> out;
  for (std::uint32_t x = 0; x <= n; ++x) out.push_back(binomial_chance(x, n, p));
  return out;
}

std::uint32_t whole_runs(const Design& d) {
  PROCTOR_ASSERT(1 <= d.runs && d.runs <= kMostExactRuns && std::floor(d.runs) == d.runs);
  return static_cast<std::uint32_t>(d.runs);
}

}  // namespace

std::optional<SettledShares> settled_shares(const Design& d) {
  SettledShares s;
  s.both = d.p_a * d.p_b + d.correlation * std::sqrt(spread(d.p_a) * spread(d.p_b));
  s.only_a = d.p_a - s.both;
  s.only_b = d.p_b - s.both;
  s.neither = 1 - s.both - s.only_a - s.only_b;
  // At the very limit rounding may leave a share of less than nothing.
  constexpr double kRounding = 1e-12;
  for (double* share : {&s.both, &s.only_a, &s.only_b, &s.neither}) {
    if (*share < -kRounding) return std::nullopt;
    *share = std::max(0.0, *share);
  }
  return s;
}

double most_correlation(double p_a, double p_b) {
  PROCTOR_ASSERT(0 < p_a && p_a < 1 && 0 < p_b && p_b < 1);
  const double low = std::min(p_a, p_b), high = std::max(p_a, p_b);
  return std::sqrt(low * (1 - high) / (high * (1 - low)));
}

std::vector<double> difference_chances(const Design& d) {
  const std::uint32_t k = whole_runs(d);
  const std::optional<SettledShares> settled = settled_shares(d);
  PROCTOR_ASSERT(settled.has_value());
  const std::vector<double> a = binomial_chances(k, d.p_a), b = binomial_chances(k, d.p_b);
  std::vector<double> out(2 * std::size_t{k} + 1, 0.0);
  for (std::uint32_t x = 0; x <= k; ++x)
    for (std::uint32_t y = 0; y <= k; ++y) out[k + x - y] += (1 - d.icc) * a[x] * b[y];
  out[k] += d.icc * (settled->both + settled->neither);
  out[2 * std::size_t{k}] += d.icc * settled->only_a;
  out[0] += d.icc * settled->only_b;
  return out;
}

Discordance discordance(const Design& d) {
  const double shared = d.correlation * d.icc * std::sqrt(spread(d.p_a) * spread(d.p_b));
  return {d.p_a * (1 - d.p_b) - shared, d.p_b * (1 - d.p_a) - shared};
}

bool t_rejects(double sum, double squares, double tasks, double critical) {
  return critical * critical * (tasks * squares - sum * sum) < sum * sum * (tasks - 1);
}

SimulatedPower simulate_power(const Design& d, std::uint64_t tasks, std::uint64_t campaigns,
                              const std::function<double()>& uniform) {
  PROCTOR_ASSERT(2 <= tasks);
  const std::uint32_t k = whole_runs(d);
  const std::optional<SettledShares> settled = settled_shares(d);
  PROCTOR_ASSERT(settled.has_value());
  const std::int64_t all = k;
  const auto one_task = [&]() -> std::int64_t {
    if (uniform() < d.icc) {
      const double kind = uniform() - settled->both;
      if (kind < 0) return 0;
      if (kind < settled->only_a) return all;
      return kind - settled->only_a < settled->only_b ? -all : 0;
    }
    std::int64_t ahead = 0;
    for (std::uint32_t r = 0; r < k; ++r) {
      if (uniform() < d.p_a) ++ahead;
      if (uniform() < d.p_b) --ahead;
    }
    return ahead;
  };
  const double n = static_cast<double>(tasks), critical = t_quantile_two_sided(d.alpha, n - 1);
  SimulatedPower out;
  for (std::uint64_t c = 0; c < campaigns; ++c) {
    std::int64_t sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < tasks; ++i) {
      const std::int64_t x = one_task();
      sum += x;
      squares += x * x;
    }
    if (c == 0) {
      out.first_sum = sum;
      out.first_squares = squares;
    }
    out.sum += sum;
    if (t_rejects(static_cast<double>(sum), static_cast<double>(squares), n, critical))
      ++out.rejected;
  }
  return out;
}

}  // namespace proctor
