#include "common/stats/multiplicity.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace proctor {
namespace {

std::vector<std::size_t> ascending(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  return order;
}

// From the largest p down: each is at most what the one above it became.  `factor(i)` of the i-th
// smallest, from 0.
template <class F>
std::vector<double> step_up(std::span<const double> p, F factor) {
  const std::vector<std::size_t> order = ascending(p);
  std::vector<double> out(p.size());
  double above = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    above = std::min(above, p[order[i]] * factor(i));
    out[order[i]] = above;
  }
  return out;
}

}  // namespace

std::vector<double> adjust_holm(std::span<const double> p) {
  const std::vector<std::size_t> order = ascending(p);
  std::vector<double> out(p.size());
  double below = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    below = std::max(below, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    out[order[i]] = below;
  }
  return out;
}

std::vector<double> adjust_hochberg(std::span<const double> p) {
  return step_up(p, [&](std::size_t i) { return static_cast<double>(p.size() - i); });
}

std::vector<double> adjust_benjamini_hochberg(std::span<const double> p) {
  const double n = static_cast<double>(p.size());
  return step_up(p, [&](std::size_t i) { return n / static_cast<double>(i + 1); });
}

std::vector<double> adjust_benjamini_yekutieli(std::span<const double> p) {
  const double n = static_cast<double>(p.size());
  double harmonic = 0;
  for (std::size_t i = 0; i < p.size(); ++i) harmonic += 1 / static_cast<double>(i + 1);
  return step_up(p, [&](std::size_t i) { return n * harmonic / static_cast<double>(i + 1); });
}

}  // namespace proctor
