#pragma once
// What an estimator returns: a number with what is known about it, or the reason why there is none.
// Pure; thread-safe.  No function of this room returns NaN or infinity.
#include <cstdint>
#include <optional>
#include <string_view>

namespace proctor {

struct Interval {
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Why an estimate, or a part of it, is missing.  Reports print words(), never 0 or NaN.
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
std::string_view words(Why why);

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

}  // namespace proctor
