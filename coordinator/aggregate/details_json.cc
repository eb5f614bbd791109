// Sets and prices for programs.
#include "coordinator/aggregate/analysis_json.h"
#include "coordinator/aggregate/details.h"

namespace proctor::aggregate {

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
