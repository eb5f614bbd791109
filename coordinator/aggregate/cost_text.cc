// The cost tables of the report on a terminal.
#include "common/base/text.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

std::string usd_or_dash(const std::optional<MicroUsd>& amount) {
  return amount ? format_usd(*amount) : "-";
}

// "37.2 %" of the reserved; by integers.
std::string used(const CostRow& r) {
  if (r.asked <= MicroUsd::zero()) return "-";
  const MicroUsd charged = r.cost.total() - r.overrun - r.reviewed;
  const std::int64_t n = scaled(charged.micros(), 1000, r.asked.micros());
  return std::to_string(n / 10) + "." + std::to_string(n % 10) + " %";
}

}  // namespace

void append_cost_tables(std::string& out, const CampaignReport& report) {
  out += "\nWhere the money went (" + report.unit + "; one run with all its attempts)\n\n";
  const bool told = shows_self_reported(report);
  std::vector<std::string> header = {"by",   "group",       "runs",     "total", "median", "90 %",
                                     "most", "per success", "reserved", "used",  "wasted"};
  if (told) header.emplace_back("self_reported");
  Table spread(std::move(header));
  for (const CostRow& r : report.costs) {
    if (r.by == "stratum" && is_only_level(report, r.name.substr(0, r.name.find('=')))) continue;
    spread.group(r.by);
    std::vector<std::string> cells = {r.by,
                                      printable(r.name),
                                      std::to_string(r.runs),
                                      format_usd(r.cost.total()),
                                      usd_or_dash(r.median),
                                      usd_or_dash(r.p90),
                                      usd_or_dash(r.most),
                                      usd_or_dash(r.per_success),
                                      format_usd(r.asked),
                                      used(r),
                                      format_usd(r.wasted)};
    if (told) cells.push_back(format_usd(r.self_reported.usd));
    spread.add(std::move(cells));
  }
  spread.append_to(out);
  const CostRow& all = report.costs.front();
  out += "\n  By category: model " + format_usd(all.cost.model) + ", execution " +
         format_usd(all.cost.execution) + ", human " + format_usd(all.cost.human) + ", overhead " +
         format_usd(all.cost.overhead) + ".\n";
  if (all.self_reported.any())
    out += "  self_reported (the agents' word alone): " + format_usd(all.self_reported.usd) + " " +
           report.unit + " in " + counted(all.self_reported.calls, "call") + " and " +
           counted(all.self_reported.tokens, "token") + ".\n";
  if (0 < all.reviews)
    out += "  Reviews (human): " + format_usd(all.reviewed) + " " + report.unit + " in " +
           counted(all.reviews, "booking") + ".\n";
  out += "  Wasted by infrastructure: " + format_usd(all.wasted) + " " + report.unit + " in " +
         counted(all.wasted_attempts, "attempt") + ".\n";
  if (MicroUsd::zero() < all.overrun)
    out += "  Metered above what was reserved, charged to no envelope: " + format_usd(all.overrun) +
           " " + report.unit + ".\n";
}

}  // namespace proctor
