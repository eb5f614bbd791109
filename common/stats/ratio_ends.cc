#include "common/stats/ratio_ends.h"

namespace proctor {

std::optional<NearEnds> ratio_ends(std::span<const Cluster> tasks, double alpha) {
  const std::optional<RatioRate> rate = ratio_rate(tasks, alpha);
  if (!rate) return std::nullopt;
  double runs = 0, with_runs = 0;
  for (const Cluster& c : tasks) {
    runs += static_cast<double>(c.runs);
    with_runs += 0 < c.runs ? 1 : 0;
  }
  const double error = rate->df ? rate->cr2.value_or(0) : 0;
  return ends_of({rate->ratio, error, rate->df.value_or(0), with_runs, runs}, alpha);
}

}  // namespace proctor
