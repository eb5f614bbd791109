#pragma once
// How far two raters agree beyond chance: Cohen's kappa with its large-sample error (Fleiss, Cohen
// & Everitt 1969), and Gwet's AC1, which holds up where nearly all cases are of one kind. Pure;
// thread-safe.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

struct Agreement {
  Estimate kappa;             // kNotDefined: both raters used one category only; kNothing: no case
  std::optional<double> ac1;  // nothing without a case
  std::optional<double> observed;  // share of cases on which they agree
};
// `counts`: cases that the first rater put into category i and the second into j at
// [i * categories + j].  Requires: 2 <= categories.
Agreement agreement(std::span<const std::uint64_t> counts, std::size_t categories,
                    double alpha = 0.05);

}  // namespace proctor
