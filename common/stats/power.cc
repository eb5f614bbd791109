#include "common/stats/power.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {
double difference_of(const Design& d) {
  return std::fabs(d.p_a - d.p_b);
}

// Power of Student's t with this non-centrality, both tails.
double power_at(double noncentrality, double df, double alpha) {
  const double t = t_quantile_two_sided(alpha, df);
  return 1 - noncentral_t_cdf(t, df, noncentrality) + noncentral_t_cdf(-t, df, noncentrality);
}
}  // namespace

double variance_of_task_difference(const Design& d) {
  PROCTOR_ASSERT(0 <= d.p_a && d.p_a <= 1 && 0 <= d.p_b && d.p_b <= 1);
  PROCTOR_ASSERT(0 <= d.icc && d.icc <= 1 && std::fabs(d.correlation) <= 1 && 1 <= d.runs);
  const double a = d.p_a * (1 - d.p_a), b = d.p_b * (1 - d.p_b);
  return d.icc * (a + b) - 2 * d.correlation * d.icc * std::sqrt(a * b) +
         (1 - d.icc) * (a + b) / d.runs;
}

double power_by_variance(double difference, double variance, std::uint64_t tasks, double alpha) {
  PROCTOR_ASSERT(0 < tasks && 0 <= variance);
  const double error = std::sqrt(variance / static_cast<double>(tasks));
  if (!(0 < error)) return difference != 0 ? 1 : 0;
  const double z = normal_quantile_two_sided(alpha), off = std::fabs(difference) / error;
  return normal_cdf(off - z) + normal_cdf(-off - z);
}

double power_by_variance_t(double difference, double variance, std::uint64_t tasks, double alpha) {
  PROCTOR_ASSERT(2 <= tasks && 0 <= variance);
  const double n = static_cast<double>(tasks), error = std::sqrt(variance / n);
  if (!(0 < error)) return difference != 0 ? 1 : 0;
  return power_at(std::fabs(difference) / error, n - 1, alpha);
}

double tasks_by_variance(double difference, double variance, double alpha, double power) {
  PROCTOR_ASSERT(difference != 0 && 0 < power && power < 1);
  const double z = normal_quantile_two_sided(alpha) + normal_quantile(power);
  return z * z * variance / (difference * difference);
}

double power_of(const Design& d, std::uint64_t tasks) {
  return power_by_variance(difference_of(d), variance_of_task_difference(d), tasks, d.alpha);
}

double power_of_t(const Design& d, std::uint64_t tasks) {
  return power_by_variance_t(difference_of(d), variance_of_task_difference(d), tasks, d.alpha);
}

// The model of settled tasks, and campaigns drawn from it.

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
    out.sum += sum;
    if (t_rejects(static_cast<double>(sum), static_cast<double>(squares), n, critical))
      ++out.rejected;
  }
  return out;
}

// Exact power of the t test over tasks, and of McNemar's test.

namespace {
// Chances of (sum, sum of squares) of whole differences in [-k, k].  A square is odd where its root
// is, so the sum of squares has the parity of the sum, and half of the pairs never occur: a row
// holds (squares - parity) / 2.
class JointLaw {
 public:
  JointLaw(std::span<const double> chances, std::uint64_t tasks)
      : chances_(chances), k_(static_cast<std::int64_t>(chances.size() / 2)) {
    const auto n = static_cast<std::int64_t>(tasks);
    row_ = static_cast<std::size_t>(n * k_ * k_ / 2 + 1);
    centre_ = n * k_;
    now_.assign(row_ * static_cast<std::size_t>(2 * centre_ + 1), 0.0);
    next_ = now_;
    at(now_, 0)[0] = 1;
  }

  void add_task() {
    const std::int64_t reach = (added_ + 1) * k_;
    for (std::int64_t s = -reach; s <= reach; ++s)
      std::fill_n(at(next_, s), squares_max(added_ + 1) / 2 + 1, 0.0);
    for (std::int64_t s = -added_ * k_; s <= added_ * k_; ++s) add_to(s);
    std::swap(now_, next_);
    ++added_;
  }

  template <class Take>
  void each(const Take& take) const {
    for (std::int64_t s = -added_ * k_; s <= added_ * k_; ++s) {
      const double* row = now_.data() + offset(s);
      for (std::int64_t q = least(s); q <= squares_max(added_) / 2; ++q)
        take(static_cast<double>(s), static_cast<double>(2 * q + parity(s)), row[q]);
    }
  }

 private:
  static std::int64_t parity(std::int64_t s) { return s & 1; }
  // No sum of squares is below its sum.
  static std::int64_t least(std::int64_t s) { return (std::abs(s) - parity(s)) / 2; }
  std::int64_t squares_max(std::int64_t tasks) const { return tasks * k_ * k_; }
  std::size_t offset(std::int64_t s) const { return row_ * static_cast<std::size_t>(centre_ + s); }
  double* at(std::vector<double>& law, std::int64_t s) const { return law.data() + offset(s); }

  void add_to(std::int64_t s) {
    const std::int64_t from = least(s), to = squares_max(added_) / 2;
    const double* row = at(now_, s);
    for (std::int64_t x = -k_; x <= k_; ++x) {
      const double chance = chances_[static_cast<std::size_t>(x + k_)];
      if (!(0 < chance)) continue;
      const std::int64_t up = (x * x + parity(s) - parity(s + x)) / 2;
      double* into = at(next_, s + x) + up;
      // What has the other parity than the most squares ends one place earlier.
      const std::int64_t end = std::min(to, squares_max(added_ + 1) / 2 - up);
      for (std::int64_t q = from; q <= end; ++q) into[q] += chance * row[q];
    }
  }

  std::span<const double> chances_;
  std::int64_t k_, centre_ = 0, added_ = 0;
  std::size_t row_ = 0;
  std::vector<double> now_, next_;
};
}  // namespace

std::uint64_t exact_cells(std::uint64_t tasks, std::uint32_t runs) {
  // Beyond these a product may not fit; it is too many anyhow.
  if (kMostExactCells < tasks || kMostExactRuns < runs) return ~std::uint64_t{0};
  const std::uint64_t sums = 2 * tasks * runs + 1;
  const std::uint64_t squares = tasks * runs * runs / 2 + 1;
  return kMostExactCells / squares < sums ? ~std::uint64_t{0} : sums * squares;
}

std::optional<ExactPower> exact_power_t(std::span<const double> chances, std::uint64_t tasks,
                                        double alpha) {
  PROCTOR_ASSERT(2 <= tasks && chances.size() % 2 == 1 && 3 <= chances.size());
  const auto runs = static_cast<std::uint32_t>(
      std::min<std::size_t>(chances.size() / 2, std::size_t{kMostExactRuns} + 1));
  if (kMostExactCells < exact_cells(tasks, runs)) return std::nullopt;
  JointLaw law(chances, tasks);
  for (std::uint64_t i = 0; i < tasks; ++i) law.add_task();
  const double n = static_cast<double>(tasks), critical = t_quantile_two_sided(alpha, n - 1);
  ExactPower out{0, 0};
  law.each([&](double sum, double squares, double chance) {
    out.total += chance;
    if (t_rejects(sum, squares, n, critical)) out.power += chance;
  });
  return out;
}

double mcnemar_tasks(const Discordance& d, double alpha, double power) {
  const double psi = d.sum(), delta = d.only_a - d.only_b;
  PROCTOR_ASSERT(0 < psi && delta != 0 && 0 < power && power < 1);
  const double root = normal_quantile_two_sided(alpha) * std::sqrt(psi) +
                      normal_quantile(power) * std::sqrt(psi - delta * delta);
  return root * root / (delta * delta);
}

McNemarPower mcnemar_power(const Discordance& d, std::uint64_t tasks, double alpha) {
  PROCTOR_ASSERT(0 < tasks && 0 < alpha && alpha < 1);
  McNemarPower out;
  const double n = static_cast<double>(tasks), psi = std::min(1.0, d.sum());
  if (!(0 < psi)) return out;
  const double share = std::clamp(d.only_a / psi, 0.0, 1.0);
  // The most discordant pairs on the lesser side with which a test still rejects; it only grows
  // with their number.
  struct Critical {
    double most = -1;
    double chance_below(double m, double p) const {
      return most < 0 ? 0 : binomial_cdf(most, m, p);
    }
  };
  Critical exact, mid;
  const auto exact_p = [](double c, double m) { return 2 * binomial_cdf(c, m, 0.5); };
  const auto mid_p = [](double c, double m) {
    return 2 * binomial_cdf(c, m, 0.5) - binomial_chance(c, m, 0.5);
  };
  // Beyond so many standard deviations nothing is left in double precision.
  constexpr double kFar = 12;
  const double reach = kFar * std::sqrt(n * psi * (1 - psi)) + kFar;
  const double first = std::max(1.0, std::floor(n * psi - reach));
  const double last = std::min(n, std::ceil(n * psi + reach));
  for (double m = first; m <= last; ++m) {
    const auto grow = [&](Critical& c, const auto& p) {
      while (2 * (c.most + 1) < m && p(c.most + 1, m) <= alpha) ++c.most;
    };
    grow(exact, exact_p);
    grow(mid, mid_p);
    const double weight = binomial_chance(m, n, psi);
    const auto both_sides = [&](const Critical& c) {
      return c.chance_below(m, share) + c.chance_below(m, 1 - share);
    };
    out.exact += weight * both_sides(exact);
    out.mid_p += weight * both_sides(mid);
  }
  return out;
}

// Exact power of the sign-flip test.

namespace {
// Sums of rounded chances are not trusted to the last digit, as a report does not.
constexpr double kRounding = 1e-12;

// What is known of so many of the tasks: the law of the sum of their differences as it is, times
// the number of ways to pick them, and as it were with signs flipped.  The sum s is at [s + reach].
struct Law {
  std::vector<double> real{1.0}, flipped{1.0};
};

// The test looks at sizes and signs of differences alone, so data sets with the same number of
// tasks at each size are one sort: each has one law under flipped signs, and one limit.
class FlipPower {
 public:
  FlipPower(std::span<const double> chances, std::uint64_t tasks, double level)
      : chances_(chances), size_(chances.size() / 2), tasks_(tasks), level_(level) {}

  double power() {
    visit(size_, tasks_, Law{});
    return power_;
  }

 private:
  // Tasks at this size and below are still to be dealt out.
  void visit(std::size_t size, std::uint64_t left, const Law& so_far) {
    if (size == 0) {
      judge(so_far, std::pow(chances_[size_], static_cast<double>(left)));
      return;
    }
    const double up = chances_[size_ + size], down = chances_[size_ - size];
    Law law = so_far;
    visit(size - 1, left, law);
    if (!(0 < up + down)) return;
    for (std::uint64_t count = 1; count <= left; ++count) {
      const double ways = static_cast<double>(left - count + 1) / static_cast<double>(count);
      law.real = with_task(law.real, size, up * ways, down * ways);
      law.flipped = with_task(law.flipped, size, 0.5, 0.5);
      visit(size - 1, left - count, law);
    }
  }

  static std::vector<double> with_task(const std::vector<double>& law, std::size_t size, double up,
                                       double down) {
    std::vector<double> out(law.size() + 2 * size, 0.0);
    for (std::size_t at = 0; at < law.size(); ++at) {
      out[at] += down * law[at];
      out[at + 2 * size] += up * law[at];
    }
    return out;
  }

  // From the farthest sums inwards, as long as the p of a sum is small enough.
  void judge(const Law& law, double weight) {
    const std::size_t reach = law.real.size() / 2;
    double p = 0;
    for (std::size_t sum = reach; 0 < sum; --sum) {
      p += law.flipped[reach + sum] + law.flipped[reach - sum];
      if (level_ + kRounding < p) return;
      power_ += weight * (law.real[reach + sum] + law.real[reach - sum]);
    }
  }

  std::span<const double> chances_;
  std::size_t size_;
  std::uint64_t tasks_;
  double level_;
  double power_ = 0;
};
}  // namespace

double least_flip_p(std::uint64_t tasks) {
  return tasks == 0 ? 1 : std::exp2(1 - static_cast<double>(tasks));
}

std::uint64_t fewest_flip_tasks(double level) {
  PROCTOR_ASSERT(0 < level);
  std::uint64_t tasks = 1;
  while (level + kRounding < least_flip_p(tasks)) ++tasks;
  return tasks;
}

bool flip_power_is_short(std::uint64_t tasks, std::uint32_t runs) {
  if (kMostFlipSums < tasks || kMostFlipSums < runs) return false;
  // Sorts of data sets: tasks dealt out to the sizes 0 .. runs.
  double sorts = 2 * static_cast<double>(tasks) * runs + 1;
  const auto few = std::min<std::uint64_t>(tasks, runs),
             many = std::max<std::uint64_t>(tasks, runs);
  for (std::uint64_t i = 1; i <= few; ++i) {
    sorts *= static_cast<double>(many + i) / static_cast<double>(i);
    if (static_cast<double>(kMostFlipSums) < sorts) return false;
  }
  return true;
}

std::optional<double> exact_power_flips(std::span<const double> chances, std::uint64_t tasks,
                                        double level) {
  PROCTOR_ASSERT(1 <= tasks && chances.size() % 2 == 1 && 3 <= chances.size());
  if (!flip_power_is_short(tasks, static_cast<std::uint32_t>(chances.size() / 2)))
    return std::nullopt;
  return std::min(1.0, FlipPower(chances, tasks, level).power());
}
}  // namespace proctor
