#include "coordinator/aggregate/price_contrasts.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/result.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis_json.h"
#include "coordinator/aggregate/format.h"

namespace proctor {
namespace {

// Amounts are millionths: what is less than half of one is no difference.
constexpr double kNoPrice = 5e-7;

// Four digits, and no more than a millionth: "0.0126", "12.40".
std::string amount(double dollars) {
  const double size = std::fabs(dollars);
  const int digits = size < 0.0001 ? 6 : size < 1 ? 4 : 2;
  return fmt::format("{:.{}f}", dollars, digits);
}

std::string between(const std::optional<Interval>& interval) {
  return interval ? fmt::format(" [{}, {}]", amount(interval->low), amount(interval->high)) : "";
}

std::string per_success(const CostPerSuccess& ratio, const std::string& unit) {
  const Estimate& e = ratio.estimate;
  std::string out = fmt::format("one more solved task costs {} {}", amount(*e.value), unit);
  if (e.interval) return out + between(e.interval);
  return out + " (no interval: it may be that nothing more is solved)";
}

// "a run of a costs 0.0126 USD more than one of b [0.0090, 0.0162], x3.17 [2.40, 4.20]".
std::string price_words(const PriceContrast& c, const std::string& unit, bool is_equal) {
  const std::string a = printable(c.a), b = printable(c.b);
  if (is_equal) return fmt::format("a run of {} costs as much as one of {}", a, b);
  const double cost = *c.difference.cost.value;
  Estimate size = c.difference.cost;  // as a positive amount
  if (cost < 0 && size.interval)
    size.interval = Interval{-size.interval->high, -size.interval->low};
  std::string out =
      fmt::format("a run of {} costs {} {} {} than one of {}{}", a, amount(std::fabs(cost)), unit,
                  cost < 0 ? "less" : "more", b, between(size.interval));
  if (!c.ratio.value) return out;
  out += fmt::format(", x{:.2f}", *c.ratio.value);
  if (c.ratio.interval)
    out += fmt::format(" [{:.2f}, {:.2f}]", c.ratio.interval->low, c.ratio.interval->high);
  return out;
}

}  // namespace

PriceContrast price_contrast(const std::string& a, const std::string& b,
                             std::span<const PricedTask> of_a, std::span<const PricedTask> of_b,
                             double alpha) {
  PROCTOR_ASSERT(of_a.size() == of_b.size());
  PriceContrast out;
  out.a = a;
  out.b = b;
  std::vector<CostPair> pairs, exchanged;
  std::vector<CostOfTask> prices;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (!of_a[i].counts || !of_b[i].counts) continue;
    const CostOfTask mine{of_a[i].cost_of_run, of_a[i].rate};
    const CostOfTask theirs{of_b[i].cost_of_run, of_b[i].rate};
    pairs.push_back({mine, theirs});
    exchanged.push_back({theirs, mine});
    prices.push_back({of_a[i].cost_of_run, of_b[i].cost_of_run});
  }
  out.tasks = pairs.size();
  if (pairs.empty()) return out;
  out.difference = incremental_cost(pairs, alpha);
  out.other_way = incremental_cost(exchanged, alpha).ratio;
  out.ratio = cost_per_success(prices, alpha).estimate;
  return out;
}

std::string words(const PriceContrast& c, const std::string& unit) {
  const double cost = c.difference.cost.value.value_or(0);
  const double success = c.difference.success.value.value_or(0);
  const bool is_equal = std::fabs(cost) < kNoPrice;
  const std::string a = printable(c.a), b = printable(c.b);
  std::string out = price_words(c, unit, is_equal);
  if (success == 0) return out + "; they solve as much";
  Estimate more = c.difference.success;  // of who solves more
  if (success < 0 && more.interval)
    more.interval = Interval{-more.interval->high, -more.interval->low};
  out +=
      fmt::format("; {} solves {:.1f} points more", 0 < success ? a : b, std::fabs(success) * 100);
  if (more.interval) out += " " + aggregate::points_between(*more.interval);
  if (is_equal) return out;
  if (c.difference.ratio.estimate.value) return out + ": " + per_success(c.difference.ratio, unit);
  if (c.other_way.estimate.value) return out + ": " + per_success(c.other_way, unit);
  return out + ", and costs less";
}

void append_price_contrasts(std::string& out, const std::vector<PriceContrast>& contrasts,
                            const CampaignReport& report) {
  if (contrasts.empty()) return;
  out += fmt::format(
      "\nWhat the difference costs (exploratory; over tasks that both have, {} intervals of each "
      "by "
      "itself)\n\n",
      aggregate::confidence(report.alpha));
  for (const PriceContrast& c : contrasts)
    aggregate::append_wrapped(
        out, "  * ", fmt::format("{} ({})", words(c, report.unit), counted(c.tasks, "task")));
}

namespace aggregate {

Ordered price_contrasts_json(const std::vector<PriceContrast>& contrasts) {
  Ordered out = Ordered::array();
  for (const PriceContrast& c : contrasts) {
    Ordered one = {{"a", c.a},
                   {"b", c.b},
                   {"tasks", c.tasks},
                   {"cost", estimate_json(c.difference.cost)},
                   {"cost_ratio", estimate_json(c.ratio)},
                   {"success", estimate_json(c.difference.success)},
                   {"cost_of_one_more", estimate_json(c.difference.ratio.estimate)},
                   {"cost_of_one_more_by_b", estimate_json(c.other_way.estimate)}};
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace aggregate
}  // namespace proctor
