#include "common/stats/pass_k.h"

#include <vector>

#include "common/base/result.h"
#include "common/stats/paired.h"

namespace proctor {
namespace {

// C(m, k) / C(n, k) for m <= n.
double choose_ratio(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  double out = 1;
  for (std::uint64_t i = 0; i < k && out != 0; ++i)
    out *= i < m ? static_cast<double>(m - i) / static_cast<double>(n - i) : 0;
  return out;
}

Estimate mean_over_tasks(std::span<const double> values, double alpha) {
  Estimate out = mean_difference(values, alpha).estimate;
  if (out.why == Why::kNotPaired) out.why = Why::kNothing;
  return out;
}

}  // namespace

std::optional<double> pass_at_k(const Cluster& t, std::uint64_t k) {
  PROCTOR_ASSERT(t.successes <= t.runs && 1 <= k);
  if (t.runs < k) return std::nullopt;
  return 1 - choose_ratio(t.runs - t.successes, t.runs, k);
}

std::optional<double> pass_all_k(const Cluster& t, std::uint64_t k) {
  PROCTOR_ASSERT(t.successes <= t.runs && 1 <= k);
  if (t.runs < k) return std::nullopt;
  return choose_ratio(t.successes, t.runs, k);
}

PassEstimate pass_k(std::span<const Cluster> tasks, std::uint64_t k, double alpha) {
  PassEstimate out;
  std::vector<double> any, all;
  for (const Cluster& t : tasks) {
    if (t.runs < k) {
      ++out.too_few;
      continue;
    }
    any.push_back(*pass_at_k(t, k));
    all.push_back(*pass_all_k(t, k));
  }
  out.tasks = any.size();
  out.at_least_one = mean_over_tasks(any, alpha);
  out.all = mean_over_tasks(all, alpha);
  return out;
}

Reliability reliability(std::span<const Cluster> tasks) {
  Reliability out;
  for (const Cluster& t : tasks) {
    if (t.runs == 0) continue;
    ++out.tasks;
    if (t.successes == t.runs)
      ++out.always;
    else if (t.successes == 0)
      ++out.never;
    else
      ++out.sometimes;
  }
  return out;
}

}  // namespace proctor
