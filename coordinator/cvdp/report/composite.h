#pragma once
// How likely a problem is solved when it is tried k times, out of n samples of each problem.
// Upstream reports the plug-in estimate 1 - (1 - c/n)^k, which is too low for k above 1; beside it
// are the unbiased ones.  Problems are the units: the interval is Student's over their own
// estimates (common/stats/clustered.h).  Pure; any thread.
// Source: CVDP 9.6; Chen et al. 2021 (pass@k); pass^k is its counterpart "all k succeed".
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/result.h"
#include "common/stats/clustered.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
// The plug-in estimate of one problem, its samples as runs.  The unbiased ones are in
// common/stats/rerun.h.
double plug_in_pass_at_k(const Cluster& problem, std::uint64_t k);

struct PassEstimates {
  std::uint64_t problems = 0;                 // that pass or fail
  std::uint64_t too_few = 0;                  // with less than k samples: in none of the below
  std::optional<ClusteredRate> plug_in;       // upstream's
  std::optional<ClusteredRate> at_least_one;  // pass@k
  std::optional<ClusteredRate> all;           // pass^k
};
PassEstimates estimate_pass(std::span<const Cluster> problems, std::uint64_t k);

// The estimates of a composite report, overall and by category and difficulty, as text and JSON.
// Problems that have a score are counted and left out: a report keeps only their cell's average.
struct PassTable {
  std::string text;
  Value json;
};
Result<PassTable> pass_table(const Value& composite, std::int64_t k = 0);
}  // namespace proctor::cvdp
