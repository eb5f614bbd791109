#include "common/stats/power_plan.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {
// Beyond so many standard deviations a density is 0 in double precision.
constexpr double kFar = 12;
constexpr unsigned kNodes = 20;

// A grid of Gauss-Legendre panels, each at most `width` wide: the density of a look is smooth on
// the scale of the increment, so such panels are exact to the last digits.
struct Grid {
  std::vector<double> at, weight;
};
Grid grid(double low, double high, double width) {
  using Rule = boost::math::quadrature::gauss<double, kNodes>;
  Grid out;
  const auto panels = static_cast<std::size_t>(std::ceil((high - low) / width));
  const double half = (high - low) / static_cast<double>(std::max<std::size_t>(1, panels)) / 2;
  for (std::size_t p = 0; p < panels; ++p) {
    const double centre = low + half * (2 * static_cast<double>(p) + 1);
    for (std::size_t i = Rule::abscissa().size(); i-- > 0;) {
      out.at.push_back(centre - half * Rule::abscissa()[i]);
      out.weight.push_back(half * Rule::weights()[i]);
    }
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
      out.at.push_back(centre + half * Rule::abscissa()[i]);
      out.weight.push_back(half * Rule::weights()[i]);
    }
  }
  return out;
}

double normal_density(double x) {
  return std::exp(-x * x / 2) * 0.39894228040143267794;
}

double upper_tail(double x) {
  return std::erfc(x * 0.70710678118654752440) / 2;
}

// The score process B(t) = Z sqrt(t), with mean drift x t: its density among those that went on.
class Process {
 public:
  explicit Process(double drift) : drift_(drift) {}

  // The chances of passing a look at `fraction` beyond these bounds of Z.
  LookChance chances(double fraction, const LookBounds& bounds) const {
    const Step s = step_to(fraction);
    const double root = std::sqrt(fraction);
    LookChance out;
    for (std::size_t i = 0; i < grid_.at.size(); ++i) {
      const double mass = grid_.weight[i] * density_[i], from = grid_.at[i] + s.mean;
      if (bounds.high) out.high += mass * upper_tail((*bounds.high * root - from) / s.deviation);
      if (bounds.low) out.low += mass * upper_tail((from - *bounds.low * root) / s.deviation);
    }
    return out;
  }

  // Goes on past a look with these bounds.
  void pass(double fraction, const LookBounds& bounds) {
    const Step s = step_to(fraction);
    const double root = std::sqrt(fraction), far = kFar * root, mean = drift_ * fraction;
    const double low = std::max(mean - far, bounds.low ? *bounds.low * root : mean - far);
    const double high = std::min(mean + far, bounds.high ? *bounds.high * root : mean + far);
    Grid next = low < high ? grid(low, high, 2 * s.deviation) : Grid{};
    std::vector<double> density(next.at.size(), 0.0);
    for (std::size_t j = 0; j < next.at.size(); ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < grid_.at.size(); ++i)
        sum += grid_.weight[i] * density_[i] *
               normal_density((next.at[j] - grid_.at[i] - s.mean) / s.deviation);
      density[j] = sum / s.deviation;
    }
    grid_ = std::move(next);
    density_ = std::move(density);
    fraction_ = fraction;
  }

 private:
  struct Step {
    double mean = 0, deviation = 0;
  };
  Step step_to(double fraction) const {
    PROCTOR_ASSERT(fraction_ < fraction && fraction <= 1);
    return {drift_ * (fraction - fraction_), std::sqrt(fraction - fraction_)};
  }

  double drift_;
  double fraction_ = 0;
  // Before the first look everything stands at 0.
  Grid grid_{{0.0}, {1.0}};
  std::vector<double> density_{1.0};
};

// The x in [low, high] at which a falling function is 0, to the last digits.
template <class F>
double falling_root(double low, double high, const F& f) {
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || high <= middle) break;
    (0 < f(middle) ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

LookBounds symmetric(double z) {
  return {-z, z};
}
}  // namespace

std::vector<LookChance> look_chances(std::span<const double> fractions,
                                     std::span<const LookBounds> bounds, double drift) {
  PROCTOR_ASSERT(fractions.size() == bounds.size() && fractions.size() <= kMostLooks);
  Process process(drift);
  std::vector<LookChance> out;
  for (std::size_t k = 0; k < fractions.size(); ++k) {
    out.push_back(process.chances(fractions[k], bounds[k]));
    if (k + 1 < fractions.size()) process.pass(fractions[k], bounds[k]);
  }
  return out;
}

double spent(Spending rule, double fraction, double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1 && 0 < fraction && fraction <= 1);
  if (rule == Spending::kPocock) return alpha * std::log1p((std::exp(1.0) - 1) * fraction);
  return 2 * upper_tail(normal_quantile_two_sided(alpha) / std::sqrt(fraction));
}

std::vector<std::optional<double>> lan_demets_bounds(std::span<const double> fractions,
                                                     Spending rule, double alpha) {
  PROCTOR_ASSERT(fractions.size() <= kMostLooks);
  std::vector<std::optional<double>> out;
  Process process(0);
  double spent_before = 0, fraction_before = 0;
  for (const double t : fractions) {
    if (t <= fraction_before) {
      out.emplace_back();
      continue;
    }
    const double until = spent(rule, t, alpha / 2), now = until - spent_before;
    std::optional<double> bound;
    // An early look may have so little to spend that no number of standard deviations is as rare.
    if (0 < now && now < process.chances(t, {{}, 0.0}).high &&
        process.chances(t, {{}, kFar}).high < now)
      bound = falling_root(0, kFar, [&](double z) {
        return process.chances(t, {{}, z}).high - now;
      });
    if (bound) spent_before = until;
    process.pass(t, bound ? symmetric(*bound) : LookBounds{});
    fraction_before = t;
    out.push_back(bound);
  }
  return out;
}

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

namespace {
constexpr std::uint32_t kMostRunsTried = 20;

double both_spreads(const Design& d) {
  return d.p_a * (1 - d.p_a) + d.p_b * (1 - d.p_b);
}

double root_of_spreads(const Design& d) {
  return std::sqrt(d.p_a * (1 - d.p_a) * d.p_b * (1 - d.p_b));
}

Design apart(Design d, double difference) {
  d.p_a = std::min(1.0, d.p_b + difference);
  return d;
}
}  // namespace

std::optional<double> smallest_difference(const Design& d, std::uint64_t tasks, double power) {
  PROCTOR_ASSERT(2 <= tasks && 0 < power && power < 1);
  const auto shows = [&](double difference) {
    const double v = variance_of_task_difference(apart(d, difference));
    return power <= power_by_variance(difference, v, tasks, d.alpha);
  };
  double low = 0, high = 1 - d.p_b;
  if (!(0 < high) || !shows(high)) return std::nullopt;
  for (int step = 0; step < 60; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || high <= middle) break;
    (shows(middle) ? high : low) = middle;
  }
  return high;
}

double turning_correlation(const Design& d) {
  PROCTOR_ASSERT(0 < root_of_spreads(d) && 1 <= d.runs);
  return both_spreads(d) * (1 - 1 / d.runs) / (2 * root_of_spreads(d));
}

std::vector<double> PlannedLooks::fractions() const {
  std::vector<double> out;
  for (const std::uint32_t k : after)
    out.push_back(static_cast<double>(k) / static_cast<double>(after.back()));
  return out;
}

std::vector<std::optional<double>> PlannedLooks::bounds(double alpha) const {
  return lan_demets_bounds(fractions(), spend, alpha);
}

double sequential_power(std::span<const std::optional<double>> bounds,
                        std::span<const double> variances, double difference, std::uint64_t tasks) {
  PROCTOR_ASSERT(!bounds.empty() && bounds.size() == variances.size() && 1 <= tasks);
  std::vector<double> information;
  for (const double v : variances) {
    if (!(0 < v)) return difference != 0 ? 1 : 0;
    information.push_back(std::min(1.0, variances.back() / v));
  }
  // A look that adds no information cannot be told from the one before it: the later, looser bound
  // would be judged on the same data, and power is not claimed for that.
  std::vector<double> at;
  std::vector<LookBounds> within;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!at.empty() && information[i] <= at.back()) continue;
    at.push_back(information[i]);
    within.push_back(bounds[i] ? LookBounds{-*bounds[i], *bounds[i]} : LookBounds{});
  }
  const double drift =
      std::fabs(difference) / std::sqrt(variances.back() / static_cast<double>(tasks));
  double sum = 0;
  for (const LookChance& chance : look_chances(at, within, drift)) sum += chance.low + chance.high;
  return sum;
}

std::optional<BudgetPoint> plan_at(const Design& design, const RunCosts& costs, std::uint64_t tasks,
                                   std::uint32_t runs, double power) {
  Design d = design;
  d.runs = runs;
  const auto difference = smallest_difference(d, tasks, power);
  if (!difference) return std::nullopt;
  const double n = static_cast<double>(tasks);
  const double variance = variance_of_task_difference(apart(d, *difference));
  BudgetPoint out;
  out.cost = static_cast<std::int64_t>(tasks) * (costs.task + runs * (costs.a + costs.b));
  out.tasks = tasks;
  out.runs = runs;
  out.difference = *difference;
  out.half_width = t_quantile_two_sided(d.alpha, n - 1) * std::sqrt(variance / n);
  return out;
}

std::optional<BudgetPoint> best_for_budget(const Design& design, const RunCosts& costs,
                                           std::int64_t budget, std::uint64_t tasks_max,
                                           double power) {
  PROCTOR_ASSERT(0 <= costs.task && 0 <= costs.a && 0 <= costs.b);
  std::optional<BudgetPoint> best;
  for (std::uint32_t k = 1; k <= kMostRunsTried; ++k) {
    const std::int64_t each = costs.task + k * (costs.a + costs.b);
    PROCTOR_ASSERT(0 < each);
    const std::uint64_t affordable = budget < 0 ? 0 : static_cast<std::uint64_t>(budget / each);
    const std::uint64_t tasks = std::min(tasks_max, affordable);
    if (tasks < 2) continue;
    const auto point = plan_at(design, costs, tasks, k, power);
    if (!point || (best && best->difference <= point->difference)) continue;
    best = point;
    best->budget = budget;
  }
  return best;
}
}  // namespace proctor
