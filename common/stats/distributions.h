#pragma once
// Distributions that the estimators need, by Boost.Math.  Pure; thread-safe.
// Requires everywhere: 0 < p < 1 for quantiles, df > 0.
namespace proctor {
// P(Z <= x) and its inverse.
double normal_cdf(double x);
double normal_quantile(double p);
// The z with P(|Z| > z) = alpha: 1.959963984540054 for 0.05.
double normal_quantile_two_sided(double alpha);

// Student's t: the t with P(|T| > t) = alpha, the upper tail P(T > x), and P(|T| > |x|).
double t_quantile_two_sided(double alpha, double df);
double t_upper_tail(double x, double df);
double t_two_sided(double x, double df);
// P(T <= x) of the non-central t with this non-centrality.
double noncentral_t_cdf(double x, double df, double noncentrality);

double beta_quantile(double p, double a, double b);
// The x with P(B > x) = p: exact where 1 - p would lose digits.
double beta_quantile_upper(double p, double a, double b);

// P(X <= x) of n trials with success rate p.  Requires: 0 <= x <= n.
double binomial_cdf(double x, double n, double p);

// P(F > x) and the x with P(F <= x) = p.
double f_quantile(double p, double df1, double df2);
// P(X > x) of chi-squared.
double chi_squared_upper_tail(double x, double df);

// Distributions that only plans need.

// P(X = x) of n trials with success rate p.  Requires: 0 <= x <= n.
double binomial_chance(double x, double n, double p);

// The x with P(X <= x) = p of chi-squared.
double chi_squared_quantile(double p, double df);
}  // namespace proctor
