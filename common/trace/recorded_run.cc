#include "common/trace/recorded_run.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/json_fields.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::string_view kRefused = "refused: ", kNotWritable = "not writable: ",
                           kProtected = "protected: ", kUnreadable = "unreadable: ";
constexpr std::string_view kCheck = "check ", kAbsent = "absent", kSafety = "safety";

struct Said {
  std::string outcome, why;
};
using SaidByName = std::vector<std::pair<std::string, Said>>;

SaidByName checks_of(const RunReport& report) {
  SaidByName out;
  for (const CheckReport& c : report.checks)
    out.emplace_back(std::string(kCheck) + c.id,
                     Said{c.outcome ? std::string(to_string(*c.outcome)) : "not_run",
                          c.failing.empty() ? c.why : c.failing.front()});
  return out;
}

SaidByName gates_of(const RunReport& report, bool safety) {
  SaidByName out;
  for (const GateReport& g : report.gates)
    if (safety || g.gate != kSafety) out.emplace_back("gate " + g.gate, Said{g.outcome, g.why});
  return out;
}

SaidByName tags_of_gates(const RunReport& report) {
  SaidByName out;
  for (const Tag& t : report.tags)
    if (!t.gate.empty() && t.gate != kSafety) out.emplace_back("tag " + t.id, Said{"there", ""});
  return out;
}

// In the order of the new ones, then those that only the old side has.
void compare(const SaidByName& was, const SaidByName& is, std::vector<VerdictDifference>& out) {
  std::map<std::string, const Said*> before;
  for (const auto& [name, said] : was) before.emplace(name, &said);
  for (const auto& [name, said] : is) {
    const auto old = before.extract(name);
    const std::string then = old.empty() ? std::string(kAbsent) : old.mapped()->outcome;
    if (then != said.outcome) out.push_back({name, then, said.outcome, said.why});
  }
  for (const auto& [name, said] : before)
    out.push_back({name, said->outcome, std::string(kAbsent), ""});
}
}  // namespace

RecordedRun recorded_run(const RunReport& report, const Digest& digest, events::Mutation mutation,
                         std::vector<Json> alerts) {
  RecordedRun out;
  out.report = digest;
  out.patch = report.patch;
  out.outcome = report.outcome;
  out.rung = report.application.rung;
  // A patch that acceptance refused is there, and is refused again.
  if (report.patch == sha256("")) out.misfit = report.application.refused;
  out.alerts = std::move(alerts);
  out.mutation = std::move(mutation);
  out.mutation.wall = out.mutation.cpu = std::chrono::milliseconds(0);
  out.mutation.memory_peak.reset();
  return out;
}

Result<RecordedRun> parse_recorded_run(std::string_view bytes) {
  PROCTOR_TRY(const Json json, parse_json(bytes, {kReportBytes, 8}));
  return from_json<RecordedRun>(json);
}

std::vector<std::string> left_to_agent(const RunReport& was, const RunReport& is) {
  std::vector<std::string> out;
  for (const std::string& text : was.violations) {
    const bool judged =
        std::ranges::any_of(std::array{kRefused, kNotWritable, kProtected, kUnreadable},
                            [&](std::string_view kind) { return text.starts_with(kind); });
    if (!judged && std::ranges::find(is.violations, text) == is.violations.end())
      out.push_back(text);
  }
  return out;
}

std::vector<VerdictDifference> differences(const RunReport& was, const RunReport& is) {
  std::vector<VerdictDifference> out;
  if (was.outcome != is.outcome)
    out.push_back({"outcome", std::string(to_string(was.outcome)),
                   std::string(to_string(is.outcome)), is.rationale});
  compare(checks_of(was), checks_of(is), out);
  const bool safety = left_to_agent(was, is).empty();
  compare(gates_of(was, safety), gates_of(is, safety), out);
  compare(tags_of_gates(was), tags_of_gates(is), out);
  return out;
}

std::string verdict_line(const std::vector<VerdictDifference>& differences) {
  if (differences.empty()) return "reproduced";
  const auto is_check = [](const VerdictDifference& d) { return d.what.starts_with(kCheck); };
  const bool checks = std::ranges::any_of(differences, is_check);
  std::string out;
  for (const VerdictDifference& d : differences) {
    if (checks && !is_check(d)) continue;
    out += (out.empty() ? "diverged: " : "; ") + d.what.substr(checks ? kCheck.size() : 0) +
           " was " + d.was + ", is " + d.is + (d.why.empty() ? "" : " (" + d.why + ")");
  }
  return printable(out, kReportTextBytes);
}
}  // namespace proctor
