#pragma once
// Which tasks tell methods apart: half of a suite may no longer do so.  Pure; thread-safe.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/stats/clustered.h"

namespace proctor {

struct Item {
  double mean = 0;                 // of the methods' rates, each counting equally
  double spread = 0;               // largest rate less smallest
  std::uint64_t discordances = 0;  // pairs of methods with different rates
};

struct Items {
  std::vector<Item> tasks;  // in the order of the input; tasks that no method ran stay all 0
  std::uint64_t discriminating = 0;
  std::uint64_t solved_by_all = 0, solved_by_none = 0;  // in every run of every method
  std::uint64_t alike = 0;                              // solved in part, and equally often by all
  std::uint64_t not_run = 0;
};
// `cells`: of task i and method m at [i * methods + m]; a method without runs is left out.
Items discriminating_items(std::span<const Cluster> cells, std::size_t methods);

}  // namespace proctor
