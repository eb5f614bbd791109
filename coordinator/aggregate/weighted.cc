// Registered weights: means of strata in the shares that the plan says the tasks stand for.
#include "coordinator/aggregate/weighted.h"

#include <fmt/format.h>

#include <map>

#include "common/base/text.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace aggregate {
namespace {

// `value` gives a task's, or nothing where it has none.
template <class Value>
std::optional<Weighted> weighted_of(const TaskCells& cells, const AnalysisPlan& plan,
                                    const Value& value) {
  if (plan.weights.empty() || cells.levels.empty()) return std::nullopt;
  Weighted out;
  std::map<std::string, Stratum> by_level;
  for (const auto& [level, share] : plan.weights) by_level[level].weight = share.real();
  for (std::size_t i = 0; i < cells.tasks.size(); ++i) {
    const std::optional<double> v = value(i);
    if (!v) continue;
    const auto at = by_level.find(cells.levels[i]);
    if (at == by_level.end()) {
      ++out.left_out;
      continue;
    }
    ++out.tasks;
    at->second.values.push_back(*v);
  }
  std::vector<Stratum> strata;
  std::vector<double> of_tasks;
  for (auto& [level, stratum] : by_level) {
    const std::size_t n = stratum.values.size();
    if (n == 0) out.missing.push_back(level);
    if (n == 1) out.single.push_back(level);
    of_tasks.insert(of_tasks.end(), n, stratum.weight / static_cast<double>(n));
    strata.push_back(std::move(stratum));
  }
  out.of = stratified_mean(strata, plan.alpha.real());
  if (!of_tasks.empty()) out.worth = kish(of_tasks).effective_n;
  return out;
}

}  // namespace

std::optional<Weighted> weighted_rate(const TaskCells& cells, std::size_t method,
                                      const AnalysisPlan& plan) {
  return weighted_of(cells, plan, [&](std::size_t i) {
    const TaskCell& c = cells.at(i, method);
    return rate(c.success, c.scorable);
  });
}

std::optional<Weighted> weighted_difference(const TaskCells& cells, std::size_t a, std::size_t b,
                                            const AnalysisPlan& plan) {
  return weighted_of(cells, plan, [&](std::size_t i) {
    const TaskCell &x = cells.at(i, a), &y = cells.at(i, b);
    return x.scorable == 0 || y.scorable == 0
               ? std::nullopt
               : std::optional(rate_difference({x.rate(), y.rate()}));
  });
}

void append_weighted(std::string& out, const Analysis& analysis) {
  if (analysis.rates.empty() || !analysis.rates.front().weighted) return;
  Table table({"method or comparison", "weighted", "interval", "tasks", "worth", "note"}, 1);
  const auto add = [&](const std::string& name, const Weighted& w, bool difference) {
    const Estimate& e = w.of.estimate;
    std::string interval = "-";
    if (e.interval && difference)
      interval = points_between(*e.interval);
    else
      interval = percent_interval(e.interval);
    std::string value = "-";
    if (e.value) value = difference ? points(*e.value) : fmt::format("{:.1f} %", *e.value * 100);
    table.add({name, value, interval, std::to_string(w.tasks), fmt::format("{:.1f}", w.worth),
               weighted_note(w)});
  };
  for (const MethodRate& r : analysis.rates)
    if (r.weighted) add(printable(r.method), *r.weighted, false);
  for (const Contrast& c : analysis.contrasts)
    if (c.weighted) add(printable(c.a) + " - " + printable(c.b), *c.weighted, true);
  out += fmt::format("\nWeighted by {} ({}; {}; worth: so many tasks of equal weight)\n\n",
                     printable(analysis.plan.weights_key), printable(weights_words(analysis.plan)),
                     analysis.registered ? "as registered" : "no plan was registered");
  table.append_to(out);
}

}  // namespace aggregate

std::string weights_words(const AnalysisPlan& plan) {
  std::string out;
  for (const auto& [level, share] : plan.weights) {
    out += out.empty() ? "" : ", ";
    out += fmt::format("{} {}", level, share.real());
  }
  return out;
}

std::string weighted_note(const Weighted& w) {
  const auto joined = [](const std::vector<std::string>& levels) {
    std::string all;
    for (const std::string& level : levels) {
      all += all.empty() ? "" : ", ";
      all += printable(level);
    }
    return all;
  };
  std::string out;
  if (w.of.estimate.why == Why::kNothing)
    out = "no estimate: no task of " + joined(w.missing);
  else if (w.of.estimate.why == Why::kOneTask)
    out = "no interval: one task of " + joined(w.single);
  else if (w.of.estimate.why != Why::kOk)
    out = words(w.of.estimate.why);
  if (0 < w.left_out) {
    out += out.empty() ? "" : "; ";
    out += fmt::format("{} of levels without a weight left out",
                       w.left_out == 1 ? "1 task" : std::to_string(w.left_out) + " tasks");
  }
  return out;
}

}  // namespace proctor
