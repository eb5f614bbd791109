#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/assert.h"
#include "common/stats/moments.h"
#include "common/stats/paired.h"

namespace proctor {
namespace {

double share(std::uint64_t x, std::uint64_t n) {
  PROCTOR_ASSERT(x <= n && 0 < n);
  return static_cast<double>(x) / static_cast<double>(n);
}

// The likeliest rate of the second side if the first side's is `d` above it: a root of a cubic, in
// closed form (Miettinen & Nurminen 1985, appendix).
double likeliest(double x1, double n1, double x2, double n2, double d) {
  const double l3 = n1 + n2, l2 = (n1 + 2 * n2) * d - l3 - (x1 + x2);
  const double l1 = (n2 * d - l3 - 2 * x2) * d + x1 + x2, l0 = x2 * d * (1 - d);
  const double q = l2 * l2 * l2 / (27 * l3 * l3 * l3) - l1 * l2 / (6 * l3 * l3) + l0 / (2 * l3);
  const double inside = l2 * l2 / (9 * l3 * l3) - l1 / (3 * l3);
  const double p = std::copysign(std::sqrt(std::max(0.0, inside)), q);
  if (p == 0) return std::clamp(-l2 / (3 * l3), 0.0, 1.0);
  const double angle = (std::numbers::pi + std::acos(std::clamp(q / (p * p * p), -1.0, 1.0))) / 3;
  return std::clamp(2 * p * std::cos(angle) - l2 / (3 * l3), 0.0, 1.0);
}

// The score statistic of "a - b is d", with the factor N / (N - 1) of Miettinen and Nurminen.
double score(double xa, double na, double xb, double nb, double d) {
  const double b = likeliest(xa, na, xb, nb, d), a = std::clamp(b + d, 0.0, 1.0);
  const double variance = (a * (1 - a) / na + b * (1 - b) / nb) * (na + nb) / (na + nb - 1);
  const double off = xa / na - xb / nb - d;
  if (!(0 < variance)) return off == 0 ? 0 : std::copysign(1e300, off);
  return off / std::sqrt(variance);
}

}  // namespace

Difference unpaired_difference(std::span<const double> a, std::span<const double> b, double alpha) {
  Difference out;
  if (a.empty() || b.empty()) {
    out.estimate.why = Why::kNothing;
    return out;
  }
  const double value = mean_of(a) - mean_of(b);
  out.estimate.value = value;
  if (a.size() < 2 || b.size() < 2) {
    out.estimate.why = Why::kOneTask;
    return out;
  }
  const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double va = variance_of(a) / na, vb = variance_of(b) / nb;
  const double se = std::sqrt(va + vb);
  out.estimate.standard_error = se;
  if (!(0 < se)) {
    out.estimate.why = Why::kNoVariance;
    return out;
  }
  const double df = square(va + vb) / (square(va) / (na - 1) + square(vb) / (nb - 1));
  out.estimate.df = df;
  const double half = t_quantile_two_sided(alpha, df) * se;
  out.estimate.interval = Interval{value - half, value + half};
  out.p = t_two_sided(value / se, df);
  return out;
}

Interval newcombe_unpaired(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                           double alpha) {
  const double pa = share(xa, na), pb = share(xb, nb);
  const Interval a = *wilson(xa, na, alpha), b = *wilson(xb, nb, alpha);
  return {pa - pb - std::sqrt(square(pa - a.low) + square(b.high - pb)),
          pa - pb + std::sqrt(square(a.high - pa) + square(pb - b.low))};
}

Interval miettinen_nurminen(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                            double alpha) {
  const double seen = share(xa, na) - share(xb, nb), z = normal_quantile_two_sided(alpha);
  const double won_a = static_cast<double>(xa), all_a = static_cast<double>(na);
  const double won_b = static_cast<double>(xb), all_b = static_cast<double>(nb);
  // Outside the interval |score| > z; it falls towards what was seen.
  const auto bisect = [&](double outside) {
    double inside = seen;
    for (int i = 0; i < 100; ++i) {
      const double middle = (inside + outside) / 2;
      (z < std::fabs(score(won_a, all_a, won_b, all_b, middle)) ? outside : inside) = middle;
    }
    return (inside + outside) / 2;
  };
  return {bisect(-1), bisect(1)};
}

Estimate katz_ratio(std::uint64_t xa, std::uint64_t na, std::uint64_t xb, std::uint64_t nb,
                    double alpha) {
  const double pa = share(xa, na), pb = share(xb, nb);
  Estimate out;
  if (xa == 0 || xb == 0) {
    out.why = Why::kNoSuccess;
    if (0 < xb) out.value = 0;
    return out;
  }
  out.value = pa / pb;
  const double se =
      std::sqrt((1 - pa) / static_cast<double>(xa) + (1 - pb) / static_cast<double>(xb));
  out.standard_error = se;  // of the logarithm
  const double factor = std::exp(normal_quantile_two_sided(alpha) * se);
  out.interval = Interval{*out.value / factor, *out.value * factor};
  return out;
}

}  // namespace proctor
