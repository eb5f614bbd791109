#include "common/stats/items.h"

#include <algorithm>

#include "common/base/assert.h"

namespace proctor {
namespace {

// Rates are compared without rounding: 1/3 of 3 runs and 2/6 of 6 are equal.
bool alike(const Cluster& a, const Cluster& b) {
  return a.successes * b.runs == b.successes * a.runs;
}

Item item_of(std::span<const Cluster> methods) {
  Item out;
  double low = 1, high = 0;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const double rate =
        static_cast<double>(methods[i].successes) / static_cast<double>(methods[i].runs);
    out.mean += rate / static_cast<double>(methods.size());
    low = std::min(low, rate);
    high = std::max(high, rate);
    for (std::size_t j = 0; j < i; ++j) out.discordances += alike(methods[i], methods[j]) ? 0 : 1;
  }
  out.spread = high - low;
  return out;
}

}  // namespace

Items discriminating_items(std::span<const Cluster> cells, std::size_t methods) {
  PROCTOR_ASSERT(0 < methods && cells.size() % methods == 0);
  Items out;
  for (std::size_t at = 0; at < cells.size(); at += methods) {
    std::vector<Cluster> ran;
    for (const Cluster& c : cells.subspan(at, methods))
      if (0 < c.runs) ran.push_back(c);
    if (ran.empty()) {
      out.tasks.emplace_back();
      ++out.not_run;
      continue;
    }
    const Item item = out.tasks.emplace_back(item_of(ran));
    const auto all = [](const Cluster& c) { return c.successes == c.runs; };
    const auto none = [](const Cluster& c) { return c.successes == 0; };
    if (0 < item.discordances)
      ++out.discriminating;
    else if (std::ranges::all_of(ran, all))
      ++out.solved_by_all;
    else if (std::ranges::all_of(ran, none))
      ++out.solved_by_none;
    else
      ++out.alike;
  }
  return out;
}

}  // namespace proctor
