// The part of the report that says where the money went.
#include <algorithm>

#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
namespace {

// A group and what its quantiles are taken from.
struct Gathered {
  CostRow row;
  std::vector<MicroUsd> of_ended;
};

void add(Gathered& g, const RunRecord& run) {
  CostRow& r = g.row;
  ++r.runs;
  r.cost = r.cost + run.cost;
  r.asked = r.asked + run.asked;
  r.overrun = r.overrun + run.overrun;
  r.wasted = r.wasted + run.wasted;
  r.wasted_attempts += run.wasted_attempts;
  r.reviewed = r.reviewed + run.reviewed;
  r.reviews += run.reviews;
  r.self_reported = r.self_reported + run.self_reported;
  r.model_use = r.model_use + run.model_use;
  if (run.state != RunRecord::State::kEnded) return;
  ++r.ended;
  r.successes += run.outcome == RunOutcome::kSuccess ? 1 : 0;
  g.of_ended.push_back(run.cost.total());
}

// The smallest amount that at least `percent` of all are not above.
std::optional<MicroUsd> nearest_rank(const std::vector<MicroUsd>& sorted, std::size_t percent) {
  if (sorted.empty()) return std::nullopt;
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

CostRow finished(Gathered g, std::string_view by, std::string name) {
  std::ranges::sort(g.of_ended);
  g.row.by = by;
  g.row.name = std::move(name);
  g.row.median = nearest_rank(g.of_ended, 50);
  g.row.p90 = nearest_rank(g.of_ended, 90);
  g.row.most = nearest_rank(g.of_ended, 100);
  g.row.per_success = cost_per_success(g.row.cost.total(), g.row.successes);
  return std::move(g.row);
}

}  // namespace

std::optional<MicroUsd> cost_per_success(MicroUsd total, std::uint64_t successes) {
  if (successes == 0) return std::nullopt;
  const auto n = static_cast<std::int64_t>(successes);
  const std::int64_t whole = total.micros() / n;
  return MicroUsd::from_micros(whole + (total.micros() % n == 0 ? 0 : 1));
}

std::vector<CostRow> cost_rows(const CampaignReport& report) {
  Gathered all;
  std::map<std::pair<bool, std::string>, Gathered> methods;  // controls last
  std::map<std::pair<std::size_t, std::string>, Gathered> strata;
  std::map<std::string, Gathered> stages;
  std::map<std::size_t, Gathered> outcomes;  // by RunOutcome, then those without
  constexpr std::size_t kNotEnded = 4, kRemovedLater = 5;
  for (const RunRecord& run : report.runs) {
    add(all, run);
    add(methods[{run.is_control(), run.method}], run);
    for (std::size_t k = 0; k < run.strata.size(); ++k) add(strata[{k, run.strata[k]}], run);
    if (1 < report.stages.size()) add(stages[run.stage], run);
    const bool ended = run.state == RunRecord::State::kEnded;
    add(outcomes[ended                      ? static_cast<std::size_t>(run.outcome)
                 : run.ended_before_removal ? kRemovedLater
                                            : kNotEnded],
        run);
  }
  std::vector<CostRow> out = {finished(std::move(all), "all", "all")};
  for (auto& [key, g] : methods) out.push_back(finished(std::move(g), "method", key.second));
  for (auto& [key, g] : strata)
    out.push_back(
        finished(std::move(g), "stratum", report.strata_keys[key.first] + "=" + key.second));
  for (const std::string& stage : report.stages)
    if (stages.contains(stage)) out.push_back(finished(std::move(stages[stage]), "stage", stage));
  for (auto& [o, g] : outcomes)
    out.push_back(finished(std::move(g), "outcome",
                           o == kNotEnded ? "not ended"
                           : o == kRemovedLater
                               ? "removed"
                               : std::string(to_string(static_cast<RunOutcome>(o)))));
  return out;
}

}  // namespace proctor
