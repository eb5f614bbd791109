// What was projected beside what was observed, on a terminal and as a table.
#include "coordinator/aggregate/comparison.h"

#include "common/base/csv.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

// "0.734" of 734.
std::string ratio(const ComparisonRow& r, const char* none) {
  if (!r.ratio_thousandths) return none;
  const std::string n = std::to_string(*r.ratio_thousandths);
  const std::string padded = n.size() < 4 ? std::string(4 - n.size(), '0') + n : n;
  return padded.substr(0, padded.size() - 3) + "." + padded.substr(padded.size() - 3);
}

}  // namespace

void append_comparison(std::string& out, const Comparison& c) {
  out += std::string("\nProjected and actual cost (") + money_word(c.abstract) + "; inputs " +
         c.inputs + ", " +
         (c.registered ? "registered before the first run"
                       : "NOT registered: written afterwards, so no forecast") +
         ")\n\n";
  Table table({"by", "", "projected", "of the runs paid for", "actual", "ratio"});
  for (const ComparisonRow& r : c.rows) {
    table.group(r.by);
    table.add({r.by, printable(r.name), format_usd(r.expected), format_usd(r.of_paid),
               format_usd(r.actual), ratio(r, "-")});
  }
  table.append_to(out);
  out += "\n  " + std::to_string(c.paid) + " of " + std::to_string(c.runs) +
         " planned runs were paid for. ratio: actual / projected of the runs paid for. actual: "
         "metered\n  quantities at the registered prices, and reviews; not a provider's bill.\n";
}

std::string render_projection_comparison_csv(const Comparison& c) {
  std::string out;
  csv_append_record(
      out, {"by", "name", "projected_usd", "projected_of_paid_runs_usd", "actual_usd", "ratio"});
  for (const ComparisonRow& r : c.rows)
    csv_append_record(out, {r.by, r.name, format_usd_exact(r.expected), format_usd_exact(r.of_paid),
                            format_usd_exact(r.actual), ratio(r, "")});
  return out;
}

}  // namespace proctor
