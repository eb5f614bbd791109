#pragma once
// The result of an estimator, a number with what is known about it or the reason why there is none;
// and the intervals of one rate of independent trials.
// Pure; thread-safe.  No function of this room returns NaN or infinity.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/words.h"
#include "common/stats/distributions.h"

namespace proctor {
struct Interval {
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Why an estimate, or a part of it, is missing.  Reports print its words, never 0 or NaN.
enum class Why : std::uint8_t {
  kOk,
  kNothing,     // no data at all
  kOneTask,     // one cluster: there is no variance between clusters
  kOneGroup,    // likewise one repository, where repositories are the clusters
  kNoVariance,  // all clusters say the same: a standard error of 0 says nothing
  kNoSuccess,   // a ratio whose denominator is 0
  kUnbounded,   // the confidence set is no bounded interval
  kTooFew,      // fewer data than the method needs
  kNotPaired,   // the two sides share no cluster
  kNotDefined,  // the formula has no value for these data
};
constexpr auto words(Why) {
  return std::to_array<Word<Why>>({{"", Why::kOk},
                                   {"no data", Why::kNothing},
                                   {"one task only: no interval", Why::kOneTask},
                                   {"one repository only: no interval", Why::kOneGroup},
                                   {"all tasks agree: the error is not known", Why::kNoVariance},
                                   {"no success to divide by", Why::kNoSuccess},
                                   {"the data bound it on one side at most", Why::kUnbounded},
                                   {"too few data", Why::kTooFew},
                                   {"no task in common", Why::kNotPaired},
                                   {"not defined for these data", Why::kNotDefined}});
}

// A point estimate.  `value` is missing only with a `why`; an interval may be missing beside a
// value, and `why` then says what it lacks.  Bounds are as computed: rates are clamped where they
// are shown.
struct Estimate {
  std::optional<double> value;
  std::optional<double> standard_error;
  std::optional<double> df;  // degrees of freedom of Student's t, where the interval uses it
  std::optional<Interval> interval;
  Why why = Why::kOk;
};

// The outcome of a test of "no difference".
struct Significance {
  double statistic = 0;
  double p = 1;  // two-sided unless the function says otherwise
  std::optional<double> df;
  bool exact = false;  // by enumeration of all cases, not by an approximation
};

// Means and variances over tasks, summed in the order given, so that the same data give the same
// bytes.

inline double square(double x) {
  return x * x;
}

inline double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Sum of (x - mean x)(y - mean y), divided by n - 1.  Requires: as many of both, at least two.
inline double covariance_of(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mean_x) * (y[i] - mean_y);
  return sum / static_cast<double>(x.size() - 1);
}
inline double variance_of(std::span<const double> values) {
  return covariance_of(values, values);
}

// Intervals of a rate x/n of independent trials (Wilson 1927; Clopper & Pearson 1934).  They
// say how well the rate is known if every trial were a fresh draw; runs of one task are not, which
// is what clustered.h is for.  nullopt where nothing is defined.

// x/n, or nothing when n is 0: 0 of 0 is not a rate of 0.
std::optional<double> rate(std::uint64_t x, std::uint64_t n);

// Score interval.  Requires: x <= n, 0 < alpha < 1.
std::optional<Interval> wilson(std::uint64_t x, std::uint64_t n, double alpha = 0.05);
// The same at a number of trials that need not be whole: an effective sample size.
std::optional<Interval> wilson_at(double rate, double n, double alpha = 0.05);

// Exact interval: covers at least 1 - alpha for every true rate.  Requires: as wilson.
std::optional<Interval> clopper_pearson(std::uint64_t x, std::uint64_t n, double alpha = 0.05);
// The same for numbers that need not be whole.  Requires: 0 <= x <= n, 0 < n.
Interval clopper_pearson_at(double x, double n, double alpha = 0.05);

// How often a check flickers, by its repeats.

// The upper limit of the flake rate where `agreeing` of `repeats` came out as most did.  Which
// outcome is the usual one was chosen by looking, so both ends count; 1/2 where not even that is
// excluded.  Requires: 0 < repeats, agreeing <= repeats.
double flake_upper_limit(std::uint64_t agreeing, std::uint64_t repeats, double alpha = 0.05);

// Fisher's exact test that the second sample has the higher rate: of x of n and y of m.
double fisher_greater(std::uint64_t x, std::uint64_t n, std::uint64_t y, std::uint64_t m);

// The one-sided lower limit of a rate, x of n (Clopper & Pearson).
double lower_limit(std::uint64_t x, std::uint64_t n, double alpha = 0.05);
}  // namespace proctor
