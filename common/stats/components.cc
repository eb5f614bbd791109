#include "common/stats/components.h"

#include <algorithm>
#include <cmath>

#include "common/base/assert.h"
#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

struct Table {
  std::size_t tasks = 0, methods = 0;
  std::vector<double> rates;  // as the cells
  double at(std::size_t task, std::size_t method) const { return rates[task * methods + method]; }
  double task_mean(std::size_t task) const {
    return mean_of(std::span(rates).subspan(task * methods, methods));
  }
  double method_mean(std::size_t method) const {
    double sum = 0;
    for (std::size_t i = 0; i < tasks; ++i) sum += at(i, method);
    return sum / static_cast<double>(tasks);
  }
};

// Sums of squares of the table of rates, each cell one value.
struct Squares {
  double task = 0, method = 0, interaction = 0;
};
Squares squares_of(const Table& t) {
  Squares out;
  const double all = mean_of(t.rates);
  std::vector<double> method_means;
  for (std::size_t m = 0; m < t.methods; ++m) {
    method_means.push_back(t.method_mean(m));
    out.method += square(method_means[m] - all) * static_cast<double>(t.tasks);
  }
  for (std::size_t i = 0; i < t.tasks; ++i) {
    const double task_mean = t.task_mean(i);
    out.task += square(task_mean - all) * static_cast<double>(t.methods);
    for (std::size_t m = 0; m < t.methods; ++m)
      out.interaction += square(t.at(i, m) - task_mean - method_means[m] + all);
  }
  return out;
}

}  // namespace

VarianceComponents variance_components(std::span<const Cluster> cells, std::size_t methods) {
  VarianceComponents out;
  const auto missing = [&](Why why) {
    out.why = why;
    return out;
  };
  if (cells.empty()) return missing(Why::kNothing);
  PROCTOR_ASSERT(0 < methods && cells.size() % methods == 0);
  Table t{cells.size() / methods, methods, {}};
  double runs = 0, reciprocal = 0, within = 0;
  std::uint64_t least = cells[0].runs, most = cells[0].runs;
  for (const Cluster& c : cells) {
    PROCTOR_ASSERT(0 < c.runs && c.successes <= c.runs);
    const double k = static_cast<double>(c.runs), x = static_cast<double>(c.successes);
    t.rates.push_back(x / k);
    runs += k;
    reciprocal += 1 / k;
    within += x * (k - x) / k;
    least = std::min(least, c.runs);
    most = std::max(most, c.runs);
  }
  const double count = static_cast<double>(cells.size());
  if (t.tasks < 2) return missing(Why::kOneTask);
  if (methods < 2 || !(count < runs)) return missing(Why::kTooFew);
  out.runs = least == most ? static_cast<double>(least) : count / reciprocal;
  out.approximate = least != most;

  const Squares sums = squares_of(t);
  const double n = static_cast<double>(t.tasks), m = static_cast<double>(methods);
  out.ms_method = out.runs * sums.method / (m - 1);
  out.ms_task = out.runs * sums.task / (n - 1);
  out.ms_interaction = out.runs * sums.interaction / ((m - 1) * (n - 1));
  out.ms_repeat = within / (runs - count);
  out.repeat = out.ms_repeat;
  out.interaction = (out.ms_interaction - out.ms_repeat) / out.runs;
  out.task = (out.ms_task - out.ms_interaction) / (m * out.runs);
  if (0 < out.ms_interaction) {
    const double f = out.ms_method / out.ms_interaction, df2 = (m - 1) * (n - 1);
    out.methods = Significance{f, f_upper_tail(f, m - 1, df2), m - 1, false};
  }
  return out;
}

double error_of_difference(const VarianceComponents& parts, double tasks, double runs) {
  PROCTOR_ASSERT(0 < tasks && 0 < runs);
  // The interaction as computed, so that the data's own numbers give the paired error of the data;
  // together with the repeats it is a variance and not negative.
  const double variance = parts.interaction + parts.repeat / runs;
  return std::sqrt(2 * std::max(0.0, variance) / tasks);
}

std::optional<double> best_runs_per_task(double rho, double task_cost, double run_cost) {
  PROCTOR_ASSERT(0 <= task_cost && 0 < run_cost);
  if (rho <= 0 || 1 <= rho) return std::nullopt;
  return std::max(1.0, std::sqrt(task_cost / run_cost * (1 - rho) / rho));
}

}  // namespace proctor
