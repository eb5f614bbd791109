#pragma once
// What `proctor power` was asked, as typed and as checked numbers.
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor::cli {

// Empty: not given.
struct PowerArgs {
  std::string campaign, p, effect, rho, r, alpha, power, runs, tasks, test, looks, after, spend;
  std::string repositories, spread, from, compare, costs, budgets, tasks_max, out, simulate;
  bool exact = false, json = false;
};

// What a campaign's own files say, where nothing was typed.
struct PowerDefaults {
  std::optional<std::uint64_t> tasks, repositories;
  std::optional<std::uint32_t> runs;
  std::optional<double> effect, alpha;
};

// Fails with kInvalid and a sentence that names the option, what was found and what was expected.
// `campaign`, `comparisons` and `pilot` are the caller's to fill.
Result<PowerInput> power_input(const PowerArgs& args, const PowerDefaults& defaults);
// Of --simulate; 0: not asked.
Result<std::uint64_t> campaigns_to_simulate(const PowerArgs& args);

}  // namespace proctor::cli
