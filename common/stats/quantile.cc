#include "common/stats/quantile.h"

#include <algorithm>
#include <cmath>

#include "common/base/assert.h"

namespace proctor {

std::optional<double> quantile(std::vector<std::uint64_t> values, double q) {
  PROCTOR_ASSERT(0 <= q && q <= 1);
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double low = static_cast<double>(values[below]);
  return low + (at - static_cast<double>(below)) * (static_cast<double>(values[above]) - low);
}

}  // namespace proctor
