#include "common/stats/always_valid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/base/assert.h"

namespace proctor {
namespace {

// The shares of its wealth that each of ten gamblers bets.
constexpr int kGamblers = 10;
constexpr double share_of(int gambler) {
  return static_cast<double>(gambler) / (kGamblers + 1);
}

// The mean of the gamblers' wealth, in logarithms until the end.
double wealth(const std::array<double, kGamblers>& logs) {
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double l : logs) sum += std::exp(l - most);
  return std::exp(most) * sum / kGamblers;
}

// Betting on outcomes in [0, 1] with a mean above m.  The same of outcomes turned around is betting
// on below.
double wealth_above(std::span<const double> outcomes, double m, bool turned) {
  std::array<double, kGamblers> logs{};
  for (const double outcome : outcomes) {
    const double y = turned ? 1 - outcome : outcome;
    for (int j = 1; j <= kGamblers; ++j)
      logs[static_cast<std::size_t>(j - 1)] += std::log1p(share_of(j) * (y - m) / m);
  }
  return wealth(logs);
}

// The lowest mean that such a gambler has not ruled out, at least `low`; wealth falls with m.
double not_ruled_out(std::span<const double> outcomes, double low, double limit, bool turned) {
  constexpr double kLeast = 1e-12;
  if (wealth_above(outcomes, std::max(low, kLeast), turned) <= limit) return low;
  double from = std::max(low, kLeast), to = 1;
  for (int step = 0; step < 60; ++step) {
    const double middle = from + (to - from) / 2;
    (limit < wealth_above(outcomes, middle, turned) ? from : to) = middle;
  }
  return to;
}

}  // namespace

AlwaysValid always_valid(std::span<const double> differences, double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  std::vector<double> outcomes;
  AlwaysValid out;
  double most = out.evidence, low = 0, low_turned = 0;
  const double limit = 2 / alpha;
  for (const double d : differences) {
    PROCTOR_ASSERT(-1 <= d && d <= 1);
    outcomes.push_back((d + 1) / 2);
    constexpr double kNoDifference = 0.5;
    out.up = wealth_above(outcomes, kNoDifference, false);
    out.down = wealth_above(outcomes, kNoDifference, true);
    out.evidence = std::max(out.up, out.down) / 2;
    most = std::max(most, out.evidence);
    low = not_ruled_out(outcomes, low, limit, false);
    low_turned = not_ruled_out(outcomes, low_turned, limit, true);
  }
  out.p = std::min(1.0, 1 / most);
  out.sequence = {2 * low - 1, 1 - 2 * low_turned};
  out.now = {2 * not_ruled_out(outcomes, 0, limit, false) - 1,
             1 - 2 * not_ruled_out(outcomes, 0, limit, true)};
  return out;
}

double mcnemar_evidence(std::uint64_t pairs, std::uint64_t b) {
  PROCTOR_ASSERT(b <= pairs);
  // Exact where the numbers are: the product of b factors, no factorials.
  const double m = static_cast<double>(pairs);
  double chosen = 0;
  const std::uint64_t fewer = std::min(b, pairs - b);
  for (std::uint64_t i = 0; i < fewer; ++i)
    chosen += std::log((m - static_cast<double>(i)) / (static_cast<double>(i) + 1));
  return std::exp(m * std::log(2.0) - std::log(m + 1) - chosen);
}

}  // namespace proctor
