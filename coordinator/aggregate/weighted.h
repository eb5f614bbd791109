#pragma once
// Estimates with the plan's weights of strata.  Private to the room.
#include <optional>

#include "coordinator/aggregate/analysis.h"

namespace proctor::aggregate {

// Of one method, or of its differences to another over the tasks that both have; nothing: the plan
// has no weights, or the levels of the tasks are not known.
std::optional<Weighted> weighted_rate(const TaskCells& cells, std::size_t method,
                                      const AnalysisPlan& plan);
std::optional<Weighted> weighted_difference(const TaskCells& cells, std::size_t a, std::size_t b,
                                            const AnalysisPlan& plan);
// Sections of the text report.
void append_weighted(std::string& out, const Analysis& analysis);

}  // namespace proctor::aggregate
