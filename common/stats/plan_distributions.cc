#include "common/stats/plan_distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>

#include "common/base/result.h"

namespace proctor {

double binomial_chance(double x, double n, double p) {
  PROCTOR_ASSERT(0 <= x && x <= n && 0 <= p && p <= 1);
  return boost::math::pdf(boost::math::binomial(n, p), x);
}

double chi_squared_quantile(double p, double df) {
  PROCTOR_ASSERT(0 < p && p < 1 && 0 < df);
  return boost::math::quantile(boost::math::chi_squared(df), p);
}

}  // namespace proctor
