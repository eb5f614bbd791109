#pragma once
// A mean over tasks where tasks come in groups that are alike, such as those of one repository: the
// groups are the units (Bell & McCaffrey 2002).  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/interval.h"

namespace proctor {

struct GroupedMean {
  std::uint64_t groups = 0;
  // Every value counts equally; the error is CR2 over groups, Student's t at its own degrees.
  // kNothing; kOneTask: one group only; kNoVariance: its error is 0.
  Estimate estimate;
  std::optional<double> p;  // two-sided, of a mean of 0
};
// `group`: of each value.  Requires: as many of both.
GroupedMean grouped_mean(std::span<const double> values, std::span<const std::uint32_t> group,
                         double alpha = 0.05);

}  // namespace proctor
