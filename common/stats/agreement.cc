#include "common/stats/agreement.h"

#include <cmath>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {

Agreement agreement(std::span<const std::uint64_t> counts, std::size_t categories, double alpha) {
  PROCTOR_ASSERT(2 <= categories && counts.size() == categories * categories);
  Agreement out;
  double n = 0;
  for (const std::uint64_t c : counts) n += static_cast<double>(c);
  if (!(0 < n)) {
    out.kappa.why = Why::kNothing;
    return out;
  }
  const auto p = [&](std::size_t i, std::size_t j) {
    return static_cast<double>(counts[i * categories + j]) / n;
  };
  std::vector<double> row(categories, 0.0), column(categories, 0.0);
  double agree = 0;
  for (std::size_t i = 0; i < categories; ++i)
    for (std::size_t j = 0; j < categories; ++j) {
      row[i] += p(i, j);
      column[j] += p(i, j);
      agree += i == j ? p(i, j) : 0;
    }
  double chance = 0, chance1 = 0;
  for (std::size_t i = 0; i < categories; ++i) {
    chance += row[i] * column[i];
    const double both = (row[i] + column[i]) / 2;
    chance1 += both * (1 - both);
  }
  chance1 /= static_cast<double>(categories - 1);
  out.observed = agree;
  out.ac1 = (agree - chance1) / (1 - chance1);
  if (!(chance < 1)) {
    out.kappa.why = Why::kNotDefined;
    return out;
  }
  const double kappa = (agree - chance) / (1 - chance);
  out.kappa.value = kappa;
  double sum = 0;
  for (std::size_t i = 0; i < categories; ++i)
    for (std::size_t j = 0; j < categories; ++j)
      sum += i == j ? p(i, i) * square(1 - chance - (row[i] + column[i]) * (1 - agree))
                    : square(1 - agree) * p(i, j) * square(column[i] + row[j]);
  sum -= square(agree * chance - 2 * chance + agree);
  const double error = std::sqrt(std::fmax(0, sum) / n) / square(1 - chance);
  out.kappa.standard_error = error;
  const double half = normal_quantile_two_sided(alpha) * error;
  out.kappa.interval = Interval{kappa - half, kappa + half};
  return out;
}

}  // namespace proctor
