#include "common/stats/exact_power.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/plan_distributions.h"

namespace proctor {
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

}  // namespace proctor
