// How far a campaign is, by method and stratum.
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/end_causes.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

std::uint64_t running(const CampaignReport& report, const ReportRow& row) {
  return static_cast<std::uint64_t>(std::ranges::count_if(row.runs, [&](std::uint32_t position) {
    return report.runs[position].state == RunRecord::State::kRunning;
  }));
}

}  // namespace

std::string render_progress_text(const CampaignReport& report) {
  Table table({"method", "stratum", "planned", "done", "running", "parked", "success", "satisfied",
               "failure", "acceptance error", "invalid"});
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    table.group(row_group(r));
    table.add({printable(r.method), stratum_name(r), number(r.planned), number(r.ended()),
               number(running(report, r)), number(r.parked), number(r.success), number(r.satisfied),
               number(r.failure), number(r.acceptance_error), number(r.invalid)});
  }
  std::string out;
  table.append_to(out);
  constexpr std::size_t kMethodBytes = 600;
  for (const std::string& method : unmetered_methods(report))
    out += "\n" + printable(method, kMethodBytes) + "\n";
  append_broken_tasks(out, report);
  append_end_causes(out, report);
  return out;
}

std::string render_progress_json(const CampaignReport& report) {
  Ordered out = Ordered::array();
  for (const ReportRow& r : report.rows)
    out.push_back({{"method", r.method},
                   {"stratum", r.key.empty() ? Ordered(nullptr) : Ordered(r.key)},
                   {"value", r.key.empty() ? Ordered(nullptr) : Ordered(r.value)},
                   {"planned", r.planned},
                   {"running", running(report, r)},
                   {"parked", r.parked},
                   {"success", r.success},
                   {"satisfied", r.satisfied},
                   {"failure", r.failure},
                   {"acceptance_error", r.acceptance_error},
                   {"invalid", r.invalid},
                   {"unmetered", r.unmetered()}});
  return dumped(out);
}

}  // namespace proctor
