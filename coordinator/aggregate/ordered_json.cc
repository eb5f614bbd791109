#include "coordinator/aggregate/ordered_json.h"

#include "common/base/json_fields.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor::aggregate {
std::string filled(std::string_view shape, std::initializer_list<Ordered> values) {
  std::string out;
  const Ordered* value = values.begin();
  for (const char c : shape)
    if (c == '$')
      out += dumped(*value++);
    else if (c == '#')
      out += '"' + twelve_digits((value++)->get<double>()) + '"';
    else if (c == '@')
      out += (value++)->string();
    else
      out += c;
  return out;
}

// Comparisons for programs.

Ordered weighted_json(const std::optional<Weighted>& w) {
  if (!w) return nullptr;
  Ordered out = estimate_json(w->of.estimate);
  out["post_stratified_error"] = or_null(w->of.post_stratified_error);
  out["tasks"] = w->tasks;
  out["worth_tasks"] = w->worth;
  out["tasks_left_out"] = w->left_out;
  out["levels_without_tasks"] = w->missing;
  out["levels_with_one_task"] = w->single;
  return out;
}

namespace {
Ordered rate_json(const MethodRate& r, const AnalysisPlan& plan) {
  Ordered pass = Ordered::array();
  for (std::size_t i = 0; i < r.pass.size(); ++i)
    pass.push_back({{"k", plan.pass_k[i]},
                    {"tasks", r.pass[i].tasks},
                    {"tasks_with_fewer_runs", r.pass[i].too_few},
                    {"at_least_one", estimate_json(r.pass[i].at_least_one)},
                    {"all", estimate_json(r.pass[i].all)}});
  return {{"method", r.method},
          {"control", r.is_control},
          {"tasks", r.tasks},
          {"runs", r.runs},
          {"rate", estimate_json(r.rate)},
          {"solved",
           {{"always", r.reliability.always},
            {"sometimes", r.reliability.sometimes},
            {"never", r.reliability.never}}},
          {"pass_k", std::move(pass)},
          {"weighted", weighted_json(r.weighted)},
          {"rerun",
           {{"tasks", r.rerun.tasks},
            {"standard_error", or_null(r.rerun.standard_error)},
            {"gap95", or_null(r.rerun.gap95)},
            {"why", r.rerun.why == Why::kOk ? Ordered(nullptr) : Ordered(word_of(r.rerun.why))}}}};
}

Ordered adjustment_json(const Adjustment& a) {
  const bool joint = a.used == AnalysisPlan::Multiplicity::kMaxT;
  Ordered out = {{"rule", word_of(a.used)}, {"words", words(a)}};
  out["draws"] = joint ? Ordered(a.draws) : Ordered(nullptr);
  out["flips"] = joint ? Ordered(a.flips) : Ordered(nullptr);
  out["critical"] = joint ? Ordered(a.critical) : Ordered(nullptr);
  return out;
}

}  // namespace

Ordered estimate_json(const Estimate& e) {
  return {{"value", or_null(e.value)},
          {"standard_error", or_null(e.standard_error)},
          {"df", or_null(e.df)},
          {"interval", interval_json(e.interval)},
          {"why", e.why == Why::kOk ? Ordered(nullptr) : Ordered(word_of(e.why))}};
}

namespace {
Ordered contrasts_json(const std::vector<Contrast>& contrasts) {
  Ordered out = Ordered::array();
  for (const Contrast& c : contrasts) {
    out.push_back(contrast_columns().json(c));
    out.back()["control"] = c.is_control;
  }
  return out;
}
}  // namespace

Ordered analysis_json(const Analysis& analysis) {
  Ordered rates = Ordered::array();
  for (const MethodRate& r : analysis.rates) rates.push_back(rate_json(r, analysis.plan));
  // Read back, so that its members are in the order of their names.
  Ordered out = {{"plan", *parse_json(to_json(analysis.plan).dump())},
                 {"registered", analysis.registered},
                 {"interim", 0 < analysis.open},
                 {"adjustment", adjustment_json(analysis.adjustment)},
                 {"rates", std::move(rates)},
                 {"contrasts", contrasts_json(analysis.contrasts)}};
  // There only where a task was taken out after runs of it had ended.
  if (0 < analysis.removed_tasks) {
    out["removed_tasks"] = analysis.removed_tasks;
    out["contrasts_with_removed"] = contrasts_json(analysis.with_removed);
  }
  return out;
}

// Sets and prices for programs.
Ordered details_json(const ReportDetails& details, JsonForm form) {
  Ordered sets = Ordered::array(), prices = Ordered::array();
  for (std::size_t i = 0; i < details.sets.sets.size(); ++i) {
    const RunSet& s = details.sets.sets[i];
    Ordered set = {{"where", s.where}, {"runs", s.runs}, {"digest", s.digest.hex()}};
    if (form != JsonForm::kFirst) set["id"] = set_name(i);
    sets.push_back(std::move(set));
  }
  for (const MethodPrice& p : details.prices) {
    Ordered of_success = estimate_json(p.of_success.estimate);
    of_success["at_least"] = or_null(p.of_success.low);
    Ordered price = {{"method", p.method},
                     {"of_run", estimate_json(p.of_run)},
                     {"of_success", std::move(of_success)},
                     {"median_ms", estimate_json(p.median_ms.estimate)}};
    price["undominated"] = or_null(p.undominated);
    price["undominated_share"] = or_null(p.undominated_share);
    prices.push_back(std::move(price));
  }
  return {{"sets", std::move(sets)},
          {"prices", std::move(prices)},
          {"draws", details.draws},
          {"price_contrasts", price_contrasts_json(details.price_contrasts)},
          {"price_contrasts_left_out", details.price_contrasts_left_out},
          {"drift", drift_json(details.drift)}};
}
}  // namespace proctor::aggregate
