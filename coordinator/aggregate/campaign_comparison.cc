#include "coordinator/aggregate/campaign_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "common/base/money.h"
#include "common/base/text.h"
#include "common/stats/paired.h"
#include "coordinator/aggregate/format.h"

namespace proctor {
namespace {

// What must be alike for two campaigns to be one configuration class.
void tell_differences(const ComparedCampaign& before, const ComparedCampaign& after,
                      std::vector<std::string>& out) {
  const Registration &older = before.registration, &newer = after.registration;
  const auto cap = [](const std::string& name, const auto& of) {
    const auto found = of.find(name);
    return found == of.end() ? std::string("none") : std::to_string(found->second);
  };
  const auto money = [](const std::string& name, const auto& of, const CampaignReport& report) {
    const auto found = of.find(name);
    return found == of.end() ? std::string("none")
                             : format_usd(MicroUsd::from_micros(found->second)) + " " + report.unit;
  };
  std::set<std::string> caps;
  for (const auto& [name, value] : older.caps) caps.insert(name);
  for (const auto& [name, value] : newer.caps) caps.insert(name);
  for (const std::string& name : caps)
    if (cap(name, older.caps) != cap(name, newer.caps)) {
      const bool is_money = name == "micro_usd";
      out.push_back("the cap " + (is_money ? std::string("usd") : printable(name)) + " is " +
                    (is_money ? money(name, older.caps, before.report) : cap(name, older.caps)) +
                    " in the older, " +
                    (is_money ? money(name, newer.caps, after.report) : cap(name, newer.caps)) +
                    " in the newer");
    }
  if (cap("run", older.envelopes) != cap("run", newer.envelopes))
    out.push_back("a run may spend " + money("run", older.envelopes, before.report) +
                  " in the older, " + money("run", newer.envelopes, after.report) +
                  " in the newer");
  if (older.cost_model != newer.cost_model)
    out.emplace_back("their price tables differ, so costs do not compare");
  if (older.seed != newer.seed)
    out.push_back("their seeds differ (" + std::to_string(older.seed) + ", " +
                  std::to_string(newer.seed) + ")");
  if (older.tool_version != newer.tool_version)
    out.push_back("they were frozen by different versions (" + printable(older.tool_version) +
                  ", " + printable(newer.tool_version) + ")");
}

void tell_missing(const CampaignReport& report, const char* which, std::vector<std::string>& out) {
  if (0 < report.total.parked)
    out.push_back(std::to_string(report.total.parked) + " runs of the " + which + " are parked");
  // Whoever takes runs away chooses what is compared.
  if (0 < report.total.cancelled)
    out.push_back(std::to_string(report.total.cancelled) + " runs of the " + which +
                  " were cancelled");
  if (0 < report.total.removed)
    out.push_back(std::to_string(report.total.removed) + " runs of the " + which +
                  " were removed with their tasks");
}

void sort_tasks(const ComparedCampaign& older, const ComparedCampaign& newer,
                CampaignComparison& out) {
  const auto removed = [](const Registration& r, const std::string& task) {
    return is_removed(r, task);
  };
  for (const auto& [task, digest] : older.registration.contracts) {
    const auto found = newer.registration.contracts.find(task);
    const bool in_newer =
        found != newer.registration.contracts.end() && !removed(newer.registration, task);
    if (removed(older.registration, task)) {
      if (in_newer) out.only_newer.push_back(task);
    } else if (!in_newer) {
      out.only_older.push_back(task);
    } else {
      (found->second == digest ? out.common : out.changed).push_back(task);
    }
  }
  for (const auto& [task, digest] : newer.registration.contracts)
    if (older.registration.contracts.count(task) == 0 && !removed(newer.registration, task))
      out.only_newer.push_back(task);
  std::ranges::sort(out.only_newer);
}

// The cells of one method on some tasks, in their order.
std::vector<TaskCell> column(const TaskCells& cells, const std::string& method,
                             const std::vector<std::string>& tasks) {
  std::vector<TaskCell> out;
  const std::size_t m = cells.method(method);
  for (const std::string& task : tasks) {
    const auto at = std::ranges::lower_bound(cells.tasks, task);
    const bool there = at != cells.tasks.end() && *at == task && m < cells.methods.size();
    out.push_back(there ? cells.at(static_cast<std::size_t>(at - cells.tasks.begin()), m)
                        : TaskCell{});
  }
  return out;
}

struct Means {
  double cost = 0, time = 0;
  std::map<std::string, std::uint64_t> invalid;  // why runs ended so
};
Means means_of(const CampaignReport& report, const std::string& method,
               const std::vector<std::string>& tasks) {
  Means out;
  double ended = 0, timed = 0;
  for (const RunRecord& run : report.runs) {
    if (run.method != method || run.state != RunRecord::State::kEnded ||
        !std::ranges::binary_search(tasks, run.task))
      continue;
    ended += 1;
    out.cost += static_cast<double>(run.cost.total().micros());
    timed += run.wall_ms == 0 ? 0 : 1;
    out.time += static_cast<double>(run.wall_ms);
    if (run.outcome == RunOutcome::kInvalid) ++out.invalid[std::string(to_string(run.termination))];
  }
  if (0 < ended) out.cost /= ended;
  if (0 < timed) out.time /= timed;
  return out;
}

// What a control comes to is the same as long as tasks and checks are.
void tell_turned(const MethodComparison& control, std::vector<std::string>& out) {
  const std::uint64_t turned = control.contrast.a_better + control.contrast.b_better;
  if (!control.is_control || turned == 0) return;
  out.push_back(printable(control.new_name) + ", which measures the tasks and no agent, came to " +
                "something else at " + std::to_string(turned) + (turned == 1 ? " task" : " tasks") +
                ": their checks or what they run on have changed, and so may the others for that");
}

std::optional<double> ratio(double newer, double older) {
  return 0 < older ? std::optional(newer / older) : std::nullopt;
}

MethodComparison compare_method(const ComparedCampaign& older, const ComparedCampaign& newer,
                                const std::string& old_name, const std::string& new_name,
                                const CampaignComparison& all) {
  MethodComparison out;
  out.old_name = old_name;
  out.new_name = new_name;
  AnalysisPlan plan;
  plan.alpha.value = static_cast<std::uint32_t>(all.alpha * 1e6 + 0.5);
  plan.non_inferiority.value = static_cast<std::uint32_t>(all.margin * 1e6 + 0.5);
  plan.unit = registered_plan(newer.registration).unit;
  const TaskCells cells = task_cells(newer.report.runs);
  std::vector<std::uint32_t> repositories;
  for (const std::string& task : all.common) {
    const auto at = std::ranges::lower_bound(cells.tasks, task);
    const bool there = at != cells.tasks.end() && *at == task;
    repositories.push_back(there ? cells.repositories[at - cells.tasks.begin()] : 0);
  }
  out.contrast =
      contrast_of(column(cells, new_name, all.common),
                  column(task_cells(older.report.runs), old_name, all.common), plan, repositories);
  out.contrast.a = new_name;
  out.contrast.b = old_name;
  out.p_turned = mcnemar_exact({0, out.contrast.a_better, out.contrast.b_better, 0});
  const Means now = means_of(newer.report, new_name, all.common);
  const Means before = means_of(older.report, old_name, all.common);
  if (0 < out.contrast.tasks) {
    out.cost_ratio = ratio(now.cost, before.cost);
    out.time_ratio = ratio(now.time, before.time);
  }
  for (const auto& [why, n] : now.invalid)
    if (before.invalid.count(why) == 0) out.new_invalid.emplace(why, n);
  return out;
}

}  // namespace

std::string_view words(Decision decision) {
  switch (decision) {
    case Decision::kNotWorse:
      return "not worse";
    case Decision::kWorse:
      return "worse";
    case Decision::kUndecided:
      return "undecided";
  }
  return "";
}

namespace {

// All units differ alike, so no spread says how sure that is.  Of n units none did worse: at alpha
// at most 1 - alpha^(1/n) of all would, each by all it has.  Worse is what a flip of signs
// would not bring about by chance.
Decision decision_of_like(const Contrast& c, double margin, double alpha) {
  const double d = *c.difference.estimate.value;
  const double unseen = 1 - std::pow(alpha, 1 / static_cast<double>(c.units));
  if (-margin < d - (1 + d) * unseen) return Decision::kNotWorse;
  const bool by_chance = !c.flips || alpha < c.flips->p;
  return d < -margin && !by_chance ? Decision::kWorse : Decision::kUndecided;
}

}  // namespace

Decision decision_of(const MethodComparison& method, double margin, double alpha) {
  const Contrast& c = method.contrast;
  const Estimate& d = c.difference.estimate;
  if (!d.value) return Decision::kUndecided;
  if (d.why == Why::kNoVariance) return decision_of_like(c, margin, alpha);
  if (d.interval && d.interval->high < -margin) return Decision::kWorse;
  if (c.not_inferior && *c.not_inferior <= alpha) return Decision::kNotWorse;
  return Decision::kUndecided;
}

Decision decision_of(const CampaignComparison& comparison) {
  const bool is_open = comparison.methods.empty() || !comparison.lost_agents.empty();
  Decision out = is_open ? Decision::kUndecided : Decision::kNotWorse;
  const bool has_agent =
      std::ranges::any_of(comparison.methods, std::logical_not<>(), &MethodComparison::is_control);
  for (const MethodComparison& m : comparison.methods) {
    if (m.is_control && has_agent) continue;
    const Decision one = decision_of(m, comparison.margin, comparison.alpha);
    if (one == Decision::kWorse) return one;
    if (one == Decision::kUndecided) out = one;
  }
  return out;
}

CampaignComparison compare_campaigns(const ComparedCampaign& older, const ComparedCampaign& newer,
                                     const std::map<std::string, std::string>& names,
                                     double margin) {
  CampaignComparison out;
  out.older = older.report.campaign;
  out.newer = newer.report.campaign;
  SeenRuns seen;
  seen.add(out.older, older.report.runs);
  if (const auto again = seen.add(out.newer, newer.report.runs); 0 < again.runs)
    out.one_campaign = fmt::format(
        "both are one campaign, given twice or one folder a copy of the other: {} runs are in both",
        again.runs);
  out.margin = margin;
  out.alpha = newer.registration.analysis_plan.value_or(AnalysisPlan{}).alpha.real();
  tell_differences(older, newer, out.differences);
  tell_missing(older.report, "older", out.differences);
  tell_missing(newer.report, "newer", out.differences);
  sort_tasks(older, newer, out);
  std::set<std::string> counterparts;
  for (const auto& [old_name, digest] : older.registration.methods) {
    const auto renamed = names.find(old_name);
    const std::string new_name = renamed == names.end() ? old_name : renamed->second;
    const auto found = newer.registration.methods.find(new_name);
    if (found == newer.registration.methods.end()) {
      out.methods_only_older.push_back(old_name);
      if (!is_control(older.report, old_name)) out.lost_agents.push_back(old_name);
      continue;
    }
    counterparts.insert(new_name);
    MethodComparison one = compare_method(older, newer, old_name, new_name, out);
    one.is_control = is_control(older.report, old_name) && is_control(newer.report, new_name);
    tell_turned(one, out.differences);
    out.methods.push_back(std::move(one));
  }
  std::ranges::stable_partition(out.methods, std::logical_not<>(), &MethodComparison::is_control);
  for (const auto& [name, digest] : newer.registration.methods)
    if (counterparts.count(name) == 0) out.methods_only_newer.push_back(name);
  return out;
}

}  // namespace proctor
