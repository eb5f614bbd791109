#pragma once
// Did success drift while the campaign ran, or depend on which worker had a run?  Within each task
// and method, over scorable runs; exploratory.  Pure.
#include <cstdint>
#include <string>
#include <vector>

#include "common/stats/heterogeneity.h"

namespace proctor {

struct CampaignReport;

struct MethodTrend {
  std::string method;  // empty: all methods together
  Trend trend;         // its slope is per campaign, from the first start to the last
};

struct Drift {
  std::uint64_t runs = 0;                  // scorable ones whose start is known
  std::int64_t first_ms = 0, last_ms = 0;  // of these
  std::vector<MethodTrend> trends;         // of all, then by method
  std::vector<std::string> workers;        // that had one, by name
  // Groups in the order of `workers`.  Empty where there are more than kMostGroups.
  Association by_worker;
};
Drift drift_of(const CampaignReport& report);

// "success changed by -0.4 points from the first start to the last (p 0.9444)", or why nothing is
// known of it; and the same of workers.
std::string trend_sentence(const Trend& trend);
std::string worker_sentence(const Drift& drift);
void append_drift(std::string& out, const Drift& drift);

}  // namespace proctor
