#pragma once
// How far checks that err distort a success rate, and the rate without them: from what is known of
// the checks (Rogan & Gladen 1978, Lang & Reiczigel 2014), or from reviewed runs of the campaign.
// Pure; thread-safe.
#include <cstdint>
#include <optional>

#include "common/stats/interval.h"

namespace proctor {

// So many of `of`.
struct Count {
  std::uint64_t seen = 0, of = 0;
};

// Errors of a grader: correct patches rejected, or defects accepted.  Wilson's interval, and
// Clopper and Pearson's one-sided bound.  kNothing: none was reviewed.
struct GraderError {
  Estimate rate;
  std::optional<double> upper_bound;
};
GraderError grader_error(Count errors, double alpha = 0.05);

// What is known of the checks from elsewhere.  Requires: both with `of` > 0.
struct KnownGrader {
  Count sensitivity;  // correct patches that were accepted
  Count specificity;  // defects that were rejected
};

// The success rate behind what the checks said, not clamped to [0, 1]; the interval is Lang and
// Reiczigel's.  kNotDefined: the checks tell nothing (sensitivity + specificity <= 1).
Estimate corrected_rate(Count accepted, const KnownGrader& grader, double alpha = 0.05);
// The same of a rate over tasks, by how many independent runs its standard error is worth.
Estimate corrected_rate(double rate, double standard_error, const KnownGrader& grader,
                        double alpha = 0.05);
// A difference of two methods under one grader.
Estimate corrected_difference(double difference, double standard_error, const KnownGrader& grader,
                              double alpha = 0.05);

// Runs of this campaign that somebody reviewed, sampled at random within what the checks said.
struct Reviewed {
  Count accepted;          // of all runs
  Count accepted_correct;  // of reviewed runs that the checks accepted, those that are correct
  Count rejected_correct;  // of reviewed runs that the checks rejected, those that are correct
};
struct DoubleSampled {
  Estimate rate;                         // interval on the logit
  std::optional<double> false_positive;  // share of correct runs that the checks rejected
  std::optional<double> false_negative;  // share of defects that the checks accepted
};
DoubleSampled double_sampled_rate(const Reviewed& reviewed, double alpha = 0.05);

}  // namespace proctor
