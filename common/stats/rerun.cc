#include "common/stats/rerun.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "common/base/result.h"
#include "common/stats/distributions.h"

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

// The noise of a rerun, and gaps of equal methods.

namespace {
constexpr double kLevel = 0.05;
// Sums of chances that are this near the level are at it.
constexpr double kRounding = 1e-12;
// Multiples of numbers of runs up to which differences are exact on a lattice.
constexpr std::uint64_t kExactUnit = (std::uint64_t{1} << 15U) - 1;
constexpr std::uint64_t kExactRuns = std::uint64_t{1} << 30U;

double real(std::uint64_t x) {
  return static_cast<double>(x);
}

// One task's successes under both, and which of them may be the first's.
struct Shared {
  std::uint64_t runs_a = 0, runs_b = 0, successes = 0;
  std::uint64_t least() const { return successes < runs_b ? 0 : successes - runs_b; }
  std::uint64_t most() const { return std::min(runs_a, successes); }
  double variance() const {
    const double a = real(runs_a), b = real(runs_b), n = a + b, s = real(successes);
    return a * b * s * (n - s) / (n * n * (n - 1));
  }
};

// The chances of least() .. most(), from the likeliest on, so that none overflows.
std::vector<double> hypergeometric(const Shared& t) {
  const std::uint64_t least = t.least(), most = t.most();
  const std::uint64_t middle =
      std::clamp((t.successes + 1) * (t.runs_a + 1) / (t.runs_a + t.runs_b + 2), least, most);
  std::vector<double> chance(static_cast<std::size_t>(most - least) + 1, 0.0);
  // What the chance of c + 1 is of that of c.
  const auto ratio = [&](std::uint64_t c) {
    return real(t.runs_a - c) * real(t.successes - c) /
           (real(c + 1) * real(t.runs_b + c + 1 - t.successes));
  };
  chance[static_cast<std::size_t>(middle - least)] = 1;
  for (std::uint64_t c = middle; c < most; ++c)
    chance[static_cast<std::size_t>(c + 1 - least)] =
        chance[static_cast<std::size_t>(c - least)] * ratio(c);
  for (std::uint64_t c = middle; least < c; --c)
    chance[static_cast<std::size_t>(c - 1 - least)] =
        chance[static_cast<std::size_t>(c - least)] / ratio(c - 1);
  double sum = 0;
  for (const double p : chance) sum += p;
  for (double& p : chance) p /= sum;
  return chance;
}

// The difference of the two rates in whole units of 1 / `units`: what a success more of the first
// adds at each task, and where all begin.
struct Lattice {
  bool exact = false;
  double units = 1;
  std::vector<Shared> tasks;
  std::vector<std::uint64_t> steps;
  std::int64_t begin = 0, seen = 0;
};

void place(Lattice& lattice, const PairedTask& task, std::uint64_t of_a, std::uint64_t of_b) {
  const Shared shared{task.a.runs, task.b.runs, task.a.successes + task.b.successes};
  lattice.tasks.push_back(shared);
  lattice.steps.push_back(of_a + of_b);
  const auto at = [&](std::uint64_t successes) {
    return static_cast<std::int64_t>(of_a * successes) -
           static_cast<std::int64_t>(of_b * (shared.successes - successes));
  };
  lattice.begin += at(shared.least());
  lattice.seen += at(task.a.successes);
}

Lattice over_tasks(std::span<const PairedTask> tasks) {
  std::uint64_t unit = 1;
  for (const PairedTask& t : tasks)
    for (const std::uint64_t runs : {t.a.runs, t.b.runs})
      if (unit <= kExactUnit) unit = std::lcm(unit, runs);
  Lattice out;
  if (kExactUnit < unit) return out;
  out.exact = true;
  out.units = real(unit) * real(tasks.size());
  for (const PairedTask& t : tasks) place(out, t, unit / t.a.runs, unit / t.b.runs);
  return out;
}

Lattice over_runs(std::span<const PairedTask> tasks) {
  std::uint64_t a = 0, b = 0;
  for (const PairedTask& t : tasks) {
    a += t.a.runs;
    b += t.b.runs;
  }
  Lattice out;
  if (kExactRuns < a + b) return out;
  out.exact = true;
  out.units = real(a) * real(b);
  for (const PairedTask& t : tasks) place(out, t, b, a);
  return out;
}

// Of all sums: the two ends inwards, the farther first, until chance exceeds the level.
EqualGap read_off(const std::vector<double>& chance, const Lattice& lattice, std::int64_t step) {
  EqualGap out;
  out.exact = true;
  out.p = 0;
  const auto far = [&](std::size_t at) {
    return std::abs(lattice.begin + step * static_cast<std::int64_t>(at));
  };
  std::size_t low = 0, high = chance.size();
  bool is_found = false;
  double beyond = 0;
  while (low < high) {
    const std::int64_t distance = std::max(far(low), far(high - 1));
    double here = 0;
    while (low < high && far(low) == distance) here += chance[low++];
    while (low < high && far(high - 1) == distance) here += chance[--high];
    if (std::abs(lattice.seen) <= distance) out.p += here;
    if (!is_found && kLevel + kRounding < beyond + here) {
      out.gap95 = static_cast<double>(distance) / lattice.units;
      is_found = true;
    }
    beyond += here;
  }
  out.p = std::min(1.0, out.p);
  return out;
}

std::optional<EqualGap> convolved(const Lattice& lattice) {
  std::uint64_t unit = 0, reach = 0, runs = 0;
  for (std::size_t i = 0; i < lattice.tasks.size(); ++i)
    if (const Shared& t = lattice.tasks[i]; t.least() < t.most())
      unit = std::gcd(unit, lattice.steps[i]);
  if (unit == 0) return EqualGap{0, 1, true};
  for (std::size_t i = 0; i < lattice.tasks.size(); ++i) {
    const std::uint64_t width = lattice.tasks[i].most() - lattice.tasks[i].least();
    reach += width * (lattice.steps[i] / unit);
    runs += width;
  }
  if (kEqualGapSteps / reach < runs) return std::nullopt;
  std::vector<double> sum(static_cast<std::size_t>(reach) + 1, 0.0), next;
  sum[0] = 1;
  std::size_t top = 0;
  for (std::size_t i = 0; i < lattice.tasks.size(); ++i) {
    const std::vector<double> chance = hypergeometric(lattice.tasks[i]);
    if (chance.size() < 2) continue;
    const auto step = static_cast<std::size_t>(lattice.steps[i] / unit);
    next.assign(sum.size(), 0.0);
    for (std::size_t c = 0; c < chance.size(); ++c)
      for (std::size_t at = 0; at <= top; ++at) next[at + c * step] += sum[at] * chance[c];
    top += (chance.size() - 1) * step;
    sum.swap(next);
  }
  return read_off(sum, lattice, static_cast<std::int64_t>(unit));
}

// Difference and variance as real numbers.
EqualGap approximate(std::span<const PairedTask> tasks, Weighing weighing) {
  double runs_a = 0, runs_b = 0;
  for (const PairedTask& t : tasks) {
    runs_a += real(t.a.runs);
    runs_b += real(t.b.runs);
  }
  const double n = real(tasks.size());
  double seen = 0, variance = 0;
  for (const PairedTask& t : tasks) {
    const bool per_task = weighing == Weighing::kTasks;
    const double of_a = 1 / (per_task ? n * real(t.a.runs) : runs_a);
    const double of_b = 1 / (per_task ? n * real(t.b.runs) : runs_b);
    seen += real(t.a.successes) * of_a - real(t.b.successes) * of_b;
    const Shared shared{t.a.runs, t.b.runs, t.a.successes + t.b.successes};
    variance += square(of_a + of_b) * shared.variance();
  }
  if (!(0 < variance)) return {0, 1, false};
  const double error = std::sqrt(variance);
  return {normal_quantile_two_sided(kLevel) * error,
          std::min(1.0, 2 * normal_cdf(-std::fabs(seen) / error)), false};
}
}  // namespace

RerunNoise rerun_noise(std::span<const Cluster> tasks, Weighing weighing) {
  RerunNoise out;
  double within = 0;  // of one run, summed over tasks that show it
  double all = 0, runs = 0, several = 0, single_weight = 0;
  const auto weight = [&](const Cluster& t) {  // of the variance of one run
    return weighing == Weighing::kTasks ? 1 / real(t.runs) : real(t.runs);
  };
  for (const Cluster& t : tasks) {
    PROCTOR_ASSERT(t.successes <= t.runs);
    if (t.runs == 0) continue;
    all += 1;
    runs += real(t.runs);
    if (t.runs == 1) {
      single_weight += weight(t);
      continue;
    }
    ++out.tasks;
    const double k = real(t.runs), c = real(t.successes);
    const double variance = c * (k - c) / (k * (k - 1));
    within += variance;
    several += variance * weight(t);
  }
  if (out.tasks == 0) {
    out.why = all == 0 ? Why::kNothing : Why::kTooFew;
    return out;
  }
  const double variance = several + single_weight * (within / real(out.tasks));
  out.standard_error = std::sqrt(variance) / (weighing == Weighing::kTasks ? all : runs);
  out.gap95 = normal_quantile_two_sided(kLevel) * std::sqrt(2.0) * *out.standard_error;
  if (variance == 0) out.why = Why::kNoVariance;
  return out;
}

std::optional<EqualGap> gap_of_equals(std::span<const PairedTask> tasks, Weighing weighing) {
  if (tasks.empty()) return std::nullopt;
  for (const PairedTask& t : tasks) PROCTOR_ASSERT(0 < t.a.runs && 0 < t.b.runs);
  const Lattice lattice = weighing == Weighing::kTasks ? over_tasks(tasks) : over_runs(tasks);
  if (lattice.exact)
    if (std::optional<EqualGap> exact = convolved(lattice)) return exact;
  return approximate(tasks, weighing);
}
}  // namespace proctor
