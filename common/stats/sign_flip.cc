#include "common/stats/sign_flip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/stats/distributions.h"

namespace proctor {
namespace {

// What is known of differences before their signs are flipped.
struct Totals {
  std::int64_t seen = 0;
  std::uint64_t reach = 0, steps = 0;  // sum of the absolute ones, and how many are not 0
  double squares = 0;
  bool is_too_large() const { return 0 < reach && kSignFlipSteps / reach < steps; }
};
Totals totals_of(std::span<const std::int64_t> differences) {
  Totals out;
  for (const std::int64_t d : differences) {
    out.seen += d;
    out.reach += static_cast<std::uint64_t>(std::abs(d));
    out.steps += d == 0 ? 0 : 1;
    out.squares += static_cast<double>(d) * static_cast<double>(d);
  }
  return out;
}

// P(|sum| >= |seen|) by the normal distribution with the exact variance.
Significance approximate(const Totals& of) {
  const auto seen = static_cast<double>(of.seen);
  const double z = std::fabs(seen) / std::sqrt(of.squares);
  return {seen, std::min(1.0, 2 * normal_cdf(-z)), {}, false};
}

// With b of the |d| taken as plus, the sum is 2 (sum of those) - reach: the chance of each sum of
// those, one task after the other.
void convolve(std::vector<double>& chance, std::span<const std::int64_t> differences) {
  std::size_t top = chance.size() - 1;
  chance.resize(top + 1 + static_cast<std::size_t>(totals_of(differences).reach), 0.0);
  for (const std::int64_t d : differences) {
    const auto step = static_cast<std::size_t>(std::abs(d));
    if (step == 0) continue;
    top += step;
    for (std::size_t at = top + 1; at-- > 0;) {
      const double stays = at + step <= top ? chance[at] : 0;
      chance[at] = (stays + (step <= at ? chance[at - step] : 0)) / 2;
    }
  }
}

}  // namespace

Significance sign_flip(std::span<const std::int64_t> differences) {
  const Totals of = totals_of(differences);
  if (of.reach == 0) return {0, 1, {}, true};
  if (of.is_too_large()) return approximate(of);
  std::vector<double> chance{1.0};
  convolve(chance, differences);
  const auto far = static_cast<std::uint64_t>(std::abs(of.seen));
  double p = 0;
  for (std::uint64_t plus = 0; plus <= of.reach; ++plus) {
    const std::uint64_t sum = 2 * plus < of.reach ? of.reach - 2 * plus : 2 * plus - of.reach;
    if (far <= sum) p += chance[static_cast<std::size_t>(plus)];
  }
  return {static_cast<double>(of.seen), std::min(1.0, p), {}, true};
}

void SignFlips::add(std::span<const std::int64_t> differences) {
  const Totals of = totals_of(differences);
  seen_ += of.seen;
  reach_ += of.reach;
  steps_ += of.steps;
  squares_ += of.squares;
  is_exact_ = is_exact_ && !Totals{seen_, reach_, steps_, squares_}.is_too_large();
  if (!is_exact_) return;
  convolve(chance_, differences);
  at_least_ = chance_;
  for (std::size_t at = at_least_.size() - 1; at-- > 0;) at_least_[at] += at_least_[at + 1];
}

Significance SignFlips::with(std::span<const std::int64_t> others) const {
  Totals of = totals_of(others);
  of.seen += seen_;
  of.reach += reach_;
  of.steps += steps_;
  of.squares += squares_;
  if (of.reach == 0) return {0, 1, {}, true};
  if (!is_exact_ || of.is_too_large()) return approximate(of);
  const auto far = static_cast<std::uint64_t>(std::abs(of.seen));
  if (far == 0) return {0, 1, {}, true};
  std::vector<double> chance{1.0};
  convolve(chance, others);
  // The sum is 2 plus - reach, and its law is symmetric: twice the chance that it is at least
  // `far`, which takes `least` of plus.
  const auto least = static_cast<std::size_t>((of.reach + far + 1) / 2);
  double p = 0;
  for (std::size_t plus = 0; plus < chance.size(); ++plus) {
    const std::size_t missing = least <= plus ? 0 : least - plus;
    if (missing < at_least_.size()) p += chance[plus] * at_least_[missing];
  }
  return {static_cast<double>(of.seen), std::min(1.0, 2 * p), {}, true};
}

}  // namespace proctor
