#include "common/stats/distributions.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "common/base/result.h"

namespace proctor {
namespace bm = boost::math;

double normal_cdf(double x) {
  return bm::cdf(bm::normal(), x);
}

double normal_quantile(double p) {
  PROCTOR_ASSERT(0 < p && p < 1);
  return bm::quantile(bm::normal(), p);
}

double normal_quantile_two_sided(double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1);
  return bm::quantile(bm::complement(bm::normal(), alpha / 2));
}

double t_quantile_two_sided(double alpha, double df) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1 && 0 < df);
  return bm::quantile(bm::complement(bm::students_t(df), alpha / 2));
}

double t_upper_tail(double x, double df) {
  PROCTOR_ASSERT(0 < df);
  return bm::cdf(bm::complement(bm::students_t(df), x));
}

double t_two_sided(double x, double df) {
  return 2 * t_upper_tail(std::fabs(x), df);
}

double noncentral_t_cdf(double x, double df, double noncentrality) {
  PROCTOR_ASSERT(0 < df);
  return bm::cdf(bm::non_central_t(df, noncentrality), x);
}

double beta_quantile(double p, double a, double b) {
  PROCTOR_ASSERT(0 < p && p < 1 && 0 < a && 0 < b);
  return bm::quantile(bm::beta_distribution<>(a, b), p);
}

double beta_quantile_upper(double p, double a, double b) {
  PROCTOR_ASSERT(0 < p && p < 1 && 0 < a && 0 < b);
  return bm::quantile(bm::complement(bm::beta_distribution<>(a, b), p));
}

double binomial_cdf(double x, double n, double p) {
  PROCTOR_ASSERT(0 <= x && x <= n && 0 <= p && p <= 1);
  return bm::cdf(bm::binomial(n, p), x);
}

double f_quantile(double p, double df1, double df2) {
  PROCTOR_ASSERT(0 < p && p < 1 && 0 < df1 && 0 < df2);
  return bm::quantile(bm::fisher_f(df1, df2), p);
}

double chi_squared_upper_tail(double x, double df) {
  PROCTOR_ASSERT(0 <= x && 0 < df);
  return bm::cdf(bm::complement(bm::chi_squared(df), x));
}

double binomial_chance(double x, double n, double p) {
  PROCTOR_ASSERT(0 <= x && x <= n && 0 <= p && p <= 1);
  return boost::math::pdf(boost::math::binomial(n, p), x);
}

double chi_squared_quantile(double p, double df) {
  PROCTOR_ASSERT(0 < p && p < 1 && 0 < df);
  return boost::math::quantile(boost::math::chi_squared(df), p);
}
}  // namespace proctor
