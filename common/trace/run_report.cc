#include "common/trace/run_report.h"

#include <algorithm>

#include "common/base/json_fields.h"

namespace proctor {
namespace {
// A report is written at the end of a run that cost money: it never fails for a bad byte in it.
Json clean_json(const auto& record) {
  JsonWriter v(JsonWriter::Texts::kClean, kReportTextBytes);
  fields(v, record);
  return v.take();
}
}  // namespace

std::string wrong_times(std::int64_t started_ms, std::int64_t finished_ms, WallTime granted,
                        WallTime received) {
  if (started_ms <= 0) return "started_ms: not a time";
  if (finished_ms < started_ms) return "finished_ms: before started_ms";
  const bool set_back = granted.raw() != 0 && received.raw() != 0 && received < granted;
  const WallTime first = set_back ? received : granted, last = set_back ? granted : received;
  if (first.raw() != 0 && started_ms < first.raw() - kClockSlackMs)
    return "started_ms: more than a day before the attempt was granted";
  if (last.raw() != 0 && last.raw() + kClockSlackMs < finished_ms)
    return "finished_ms: more than a day after its result came";
  return "";
}

Json to_json(const CheckReport& check) {
  return clean_json(check);
}

// No check of a contract has a colon in its name.
std::string services_check(std::string_view check) {
  return "services:" + std::string(check);
}

std::vector<std::optional<CheckOutcome>> deciding_outcomes(const std::vector<CheckReport>& checks) {
  constexpr std::string_view kNotRun = "not_run";
  const auto failed = [&](const CheckReport& check) {
    return check.ended != kNotRun && check.outcome && *check.outcome != CheckOutcome::kPass;
  };
  const bool setup_failed = !checks.empty() && checks[0].id == kSetupCheck && failed(checks[0]);
  const auto is_decided = [&](const CheckReport& check) {
    return setup_failed || std::ranges::any_of(checks, [&](const CheckReport& other) {
             return other.id == services_check(check.id) && failed(other);
           });
  };
  std::vector<std::optional<CheckOutcome>> out;
  for (const CheckReport& check : checks)
    if (check.gate != to_string(Gate::kMaint) &&
        (check.outcome || check.ended != kNotRun || !is_decided(check)))
      out.push_back(check.outcome);
  return out;
}

std::string report_bytes(const RunReport& report) {
  Result<std::string> bytes = canonical_json(clean_json(report));
  PROCTOR_ASSERT(bytes.ok());  // text was made UTF-8 and numbers were bounded above
  return *bytes + "\n";
}

Result<RunReport> parse_report(std::string_view bytes) {
  PROCTOR_TRY(const Json json, parse_json(bytes, {.bytes_max = kReportBytes}));
  PROCTOR_TRY(RunReport report, from_json<RunReport>(json));
  if (report_bytes(report) != bytes)
    return Error{Errc::kInvalid, "not the canonical form of a report"};
  return report;
}
}  // namespace proctor
