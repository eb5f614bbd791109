#pragma once
// Rates that are not seen as they are: outcomes that are unknown, raters that disagree, checks that
// err.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {
// The rates that the data allow when some outcomes are not known: from all of them failures to all
// successes (Manski 2003), and the interval that covers the true rate wherever it lies between
// (Imbens & Manski 2004).

// One task: its runs, those that succeeded, and those whose outcome is not known.
struct PartlyKnown {
  std::uint64_t runs = 0, successes = 0, unknown = 0;
};

struct Bounds {
  Interval identified;  // the rate if every unknown outcome were a failure, and a success
  // Covers the rate with 1 - alpha.  nullopt with one task only.
  std::optional<Interval> interval;
  double critical = 0;  // how many standard errors the interval adds
};
// Over tasks with runs.  nullopt without one.  Requires: successes + unknown <= runs.
std::optional<Bounds> bounds_of_rate(std::span<const PartlyKnown> tasks, double alpha = 0.05,
                                     Weighing weighing = Weighing::kTasks);

struct PartlyKnownPair {
  PartlyKnown a, b;
};
// Bounds of a - b over tasks that both tried; `groups` as in paired.h.  Requires: runs > 0 on both
// sides.
std::optional<Bounds> bounds_of_difference(std::span<const PartlyKnownPair> tasks,
                                           double alpha = 0.05,
                                           Weighing weighing = Weighing::kTasks,
                                           std::span<const std::uint32_t> groups = {});
// The hull of both, where either set of tasks may be the one that is meant.
Bounds wider(const Bounds& x, const Bounds& y);

// How far two raters agree beyond chance: Cohen's kappa with its large-sample error (Fleiss, Cohen
// & Everitt 1969), and Gwet's AC1, which holds up where nearly all cases are of one kind.
struct Agreement {
  Estimate kappa;             // kNotDefined: both raters used one category only; kNothing: no case
  std::optional<double> ac1;  // nothing without a case
  std::optional<double> observed;  // share of cases on which they agree
};
// `counts`: cases that the first rater put into category i and the second into j at
// [i * categories + j].  Requires: 2 <= categories.
Agreement agreement(std::span<const std::uint64_t> counts, std::size_t categories,
                    double alpha = 0.05);

// How far checks that err distort a success rate, and the rate without them: from what is known of
// the checks (Rogan & Gladen 1978, Lang & Reiczigel 2014), or from reviewed runs of the campaign.

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

// Knowledge about the checks from elsewhere.  Requires: both with `of` > 0.
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
