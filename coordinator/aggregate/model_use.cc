#include "coordinator/aggregate/model_use.h"

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
namespace {
constexpr std::array<const char*, 15> kColumns{
    "model_calls",   "input_tokens",     "cached_input_tokens", "cache_written_tokens",
    "output_tokens", "reasoning_tokens", "replayed_calls",      "refused_calls",
    "ceiling_calls", "ceiling_usd",      "waited_ms",           "clamped_calls",
    "overrun_calls", "failed_calls",     "busy_calls"};

// "37.2 %"; "-" of nothing.
std::string part(std::uint64_t of, std::uint64_t all) {
  if (all == 0) return "-";
  return aggregate::percent(static_cast<double>(of) / static_cast<double>(all)) + " %";
}
}  // namespace

ModelUse operator+(const ModelUse& a, const ModelUse& b) {
  ModelUse out = a;
  for (const auto& [name, count] : kModelCounts) out.*count += b.*count;
  out.at_ceiling = a.at_ceiling + b.at_ceiling;
  return out;
}

ModelUse model_use_of(const Usage& u) {
  ModelUse out;
  out.calls = u.model_calls;
  out.input = u.input_tokens;
  out.cached = u.cached_input;
  out.cache_written = u.cache_written;
  out.output = u.output_tokens;
  out.reasoning = u.reasoning_tokens;
  out.replayed = u.replayed_calls;
  out.refused = u.refused_calls;
  out.ceiling_calls = u.ceiling_calls;
  out.at_ceiling = MicroUsd::from_micros(static_cast<std::int64_t>(u.ceiling_micros));
  out.waited_ms = u.waited_ms;
  out.clamped = u.clamped_calls;
  out.overruns = u.overruns;
  out.failed = u.failed_calls;
  out.busy = u.busy_calls;
  return out;
}

std::span<const char* const> model_use_columns() {
  return kColumns;
}

// The money stands behind the calls that it was charged for.
void append_model_use(std::vector<std::string>& cells, const ModelUse& u) {
  for (const auto& [name, count] : kModelCounts) {
    cells.push_back(std::to_string(u.*count));
    if (count == &ModelUse::ceiling_calls) cells.push_back(format_usd_exact(u.at_ceiling));
  }
}

aggregate::Ordered aggregate::model_use_json(const ModelUse& u) {
  Ordered out;
  for (const auto& [name, count] : kModelCounts) {
    out[name] = u.*count;
    if (count == &ModelUse::ceiling_calls) out["at_ceiling"] = money_json(u.at_ceiling);
  }
  return out;
}

void append_model_table(std::string& out, const CampaignReport& report) {
  if (!report.total.model_use.any()) return;
  aggregate::Table table({"method", "stratum", "calls", "input", "cached", "output", "reasoning",
                          "refused", "at ceiling", "waited (s)", "clamped", "billed more",
                          "replayed", "failed", "no room"});
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    const ModelUse& u = r.model_use;
    table.group(aggregate::row_group(r));
    table.add({printable(r.method), aggregate::stratum_name(r), std::to_string(u.calls),
               std::to_string(u.input), part(u.cached, u.input), std::to_string(u.output),
               part(u.reasoning, u.output), std::to_string(u.refused),
               part(u.ceiling_calls, u.calls), aggregate::seconds(static_cast<double>(u.waited_ms)),
               std::to_string(u.clamped), std::to_string(u.overruns), std::to_string(u.replayed),
               std::to_string(u.failed), std::to_string(u.busy)});
  }
  out += "\nCalls of models (tokens; cached of the input, reasoning of the output)\n\n";
  table.append_to(out);
}
}  // namespace proctor
