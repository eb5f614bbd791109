#include "coordinator/aggregate/ordered_json.h"

#include "common/base/json_fields.h"
#include "common/base/result.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor::aggregate {
std::string filled(std::string_view shape, std::initializer_list<Ordered> values) {
  std::string out;
  const Ordered* value = values.begin();
  const auto next = [&]() -> const Ordered& {
    PROCTOR_ASSERT(value != values.end());
    return *value++;
  };
  for (const char c : shape)
    if (c == '$')
      out += dumped(next());
    else if (c == '#')
      out += '"' + twelve_digits(next().get<double>()) + '"';
    else if (c == '@')
      out += next().string();
    else
      out += c;
  PROCTOR_ASSERT(value == values.end());
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
std::string adjustment_json(const Adjustment& a) {
  const bool joint = a.used == AnalysisPlan::Multiplicity::kMaxT;
  const auto if_joint = [&](const auto& value) { return joint ? Ordered(value) : Ordered(); };
  return filled(
      R"({"rule":$,"words":$,"draws":$,"flips":$,"critical":$})",
      {word_of(a.used), words(a), if_joint(a.draws), if_joint(a.flips), if_joint(a.critical)});
}

std::string contrast_json(const Contrast& c) {
  Ordered out = contrast_columns().json(c);
  out["control"] = c.is_control;
  return dumped(out);
}
}  // namespace

Ordered estimate_json(const Estimate& e) {
  return {{"value", or_null(e.value)},
          {"standard_error", or_null(e.standard_error)},
          {"df", or_null(e.df)},
          {"interval", interval_json(e.interval)},
          {"why", why_json(e.why)}};
}

std::string analysis_json(const Analysis& analysis) {
  std::string out =
      filled(R"({"plan":@,"registered":$,"interim":$,"adjustment":@,"rates":@,"contrasts":@)",
             {to_json(analysis.plan).dump(), analysis.registered, 0 < analysis.open,
              adjustment_json(analysis.adjustment),
              listed_rows(rate_columns(analysis.plan), analysis.rates),
              listed(analysis.contrasts, contrast_json)});
  // There only where a task was taken out after runs of it had ended.
  if (0 < analysis.removed_tasks)
    out += filled(R"(,"removed_tasks":$,"contrasts_with_removed":@)",
                  {analysis.removed_tasks, listed(analysis.with_removed, contrast_json)});
  return out + "}";
}

// Sets and prices for programs.
std::string details_json(const ReportDetails& details, JsonForm form) {
  std::vector<std::string> sets;
  for (const RunSet& s : details.sets.sets) {
    sets.push_back(filled(R"({"where":$,"runs":$,"digest":$)", {s.where, s.runs, s.digest.hex()}));
    sets.back() +=
        form == JsonForm::kFirst ? "}" : filled(R"(,"id":$})", {set_name(sets.size() - 1)});
  }
  const auto price = [](const MethodPrice& p) {
    Ordered of_success = estimate_json(p.of_success.estimate);
    of_success["at_least"] = or_null(p.of_success.low);
    return filled(
        R"({"method":$,"of_run":$,"of_success":$,"median_ms":$,"undominated":$,)"
        R"("undominated_share":$})",
        {p.method, estimate_json(p.of_run), of_success, estimate_json(p.median_ms.estimate),
         or_null(p.undominated), or_null(p.undominated_share)});
  };
  return filled(
      R"({"sets":@,"prices":@,"draws":$,"price_contrasts":@,"price_contrasts_left_out":$,)"
      R"("drift":@,"rubric":@})",
      {listed(sets), listed(details.prices, price), details.draws,
       listed(details.price_contrasts, price_contrast_json), details.price_contrasts_left_out,
       drift_json(details.drift), rubric_json(details.rubric)});
}
}  // namespace proctor::aggregate
