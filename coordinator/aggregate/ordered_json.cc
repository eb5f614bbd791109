#include "coordinator/aggregate/ordered_json.h"

#include "common/base/json_fields.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/details.h"

namespace proctor::aggregate {
// Comparisons for programs.

namespace {
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
            {"why", r.rerun.why == Why::kOk ? Ordered(nullptr) : Ordered(words(r.rerun.why))}}}};
}

Ordered repositories_json(const ByRepository& by) {
  Ordered out = estimate_json(by.mean.estimate);
  out["repositories"] = by.mean.groups;
  out["p_t"] = or_null(by.mean.p);
  out["p_exact"] = by.flips.p;
  out["p_exact_is_exact"] = by.flips.exact;
  return out;
}

Ordered adjustment_json(const Adjustment& a) {
  const bool joint = a.used == AnalysisPlan::Multiplicity::kMaxT;
  Ordered out = {{"rule", word_of(a.used)}, {"words", words(a)}};
  out["draws"] = joint ? Ordered(a.draws) : Ordered(nullptr);
  out["flips"] = joint ? Ordered(a.flips) : Ordered(nullptr);
  out["critical"] = joint ? Ordered(a.critical) : Ordered(nullptr);
  return out;
}

Ordered tipping_json(const Tipping& t) {
  Ordered out = {{"unknown", t.unknown}, {"turned_by", or_null(t.turned)}};
  out["in_favour_of"] = t.turned ? Ordered(t.for_a ? "a" : "b") : Ordered(nullptr);
  out["becomes"] = t.turned ? Ordered(words(t.becomes)) : Ordered(nullptr);
  return out;
}
}  // namespace

Ordered estimate_json(const Estimate& e) {
  return {{"value", or_null(e.value)},
          {"standard_error", or_null(e.standard_error)},
          {"df", or_null(e.df)},
          {"interval", interval_json(e.interval)},
          {"why", e.why == Why::kOk ? Ordered(nullptr) : Ordered(words(e.why))}};
}

Ordered contrast_json(const Contrast& c) {
  Ordered out = {{"a", c.a},
                 {"b", c.b},
                 {"verdict", words(c.verdict)},
                 {"tasks", c.tasks},
                 {"dropped_a", c.dropped_a},
                 {"dropped_b", c.dropped_b},
                 {"never_ended_a", c.never_a},
                 {"never_ended_b", c.never_b},
                 {"a_better", c.a_better},
                 {"b_better", c.b_better},
                 {"difference", estimate_json(c.difference.estimate)},
                 {"p_t", or_null(c.difference.p)}};
  out["p_exact"] = c.flips ? Ordered(c.flips->p) : Ordered(nullptr);
  out["p_exact_is_exact"] = c.flips && c.flips->exact;
  out["p_adjusted"] = or_null(c.adjusted);
  out["simultaneous"] = interval_json(c.simultaneous);
  out["p_equivalent"] = c.equivalence ? Ordered(c.equivalence->p_equivalent) : Ordered(nullptr);
  out["p_not_inferior"] = or_null(c.not_inferior);
  out["bounds"] = c.bounds ? interval_json(c.bounds->identified) : Ordered(nullptr);
  out["bounds_interval"] = c.bounds ? interval_json(c.bounds->interval) : Ordered(nullptr);
  out["invalid_share_difference"] = c.loss;
  out["invalid_share_p"] = or_null(c.loss_p);
  out["gap95"] = c.equals ? Ordered(c.equals->gap95) : Ordered(nullptr);
  out["gap95_is_exact"] = c.equals && c.equals->exact;
  out["p_equal_methods"] = c.equals ? Ordered(c.equals->p) : Ordered(nullptr);
  out["tie"] = c.is_tie();
  out["by_repository"] = c.by_repository ? repositories_json(*c.by_repository) : Ordered(nullptr);
  out["tipping"] = c.tipping && c.tipping->tried ? tipping_json(*c.tipping) : Ordered(nullptr);
  out["weighted"] = weighted_json(c.weighted);
  return out;
}

namespace {
Ordered contrasts_json(const std::vector<Contrast>& contrasts) {
  Ordered out = Ordered::array();
  for (const Contrast& c : contrasts) {
    out.push_back(contrast_json(c));
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
