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

}  // namespace proctor
