#include "common/stats/flip_power.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/result.h"

namespace proctor {
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
