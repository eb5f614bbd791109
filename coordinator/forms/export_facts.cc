#include "coordinator/forms/export_facts.h"

#include <algorithm>

#include "common/base/digest.h"

namespace proctor {

ExportedMethod exported(const ExportFacts& facts, const CampaignReport& report,
                        const ExportFacts::OfMethod& method) {
  ExportedMethod out{facts, report, method, {}, 0, 0};
  for (const RunRecord& run : report.runs) {
    if (run.method != method.name || run.state != RunRecord::State::kEnded) continue;
    out.runs.push_back(&run);
    if (run.started_ms <= 0) continue;
    if (out.started_ms == 0 || run.started_ms < out.started_ms) out.started_ms = run.started_ms;
    out.ended_ms = std::max(out.ended_ms, run.started_ms + static_cast<std::int64_t>(run.wall_ms));
  }
  if (out.started_ms == 0) out.started_ms = out.ended_ms = facts.registered_ms;
  return out;
}

std::uint64_t replicate_of(const RunRecord& run) {
  std::uint64_t n = 0;
  for (std::size_t at = run.name.rfind("/r") + 2; at < run.name.size(); ++at) {
    if (run.name[at] < '0' || '9' < run.name[at]) return 1;
    n = n * 10 + static_cast<std::uint64_t>(run.name[at] - '0');
  }
  return std::max<std::uint64_t>(n, 1);
}

std::string model_name(const ExportFacts::OfMethod& method) {
  if (method.model.empty()) return "proctor/" + method.name;
  return (method.developer.empty() ? "unknown" : method.developer) + "/" + method.model;
}

std::string uuid_of(std::string_view text) {
  std::string hex = sha256(text).hex().substr(0, 32);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<std::size_t>(hex[16]) % 4];
  for (const std::size_t at : {20U, 16U, 12U, 8U}) hex.insert(at, "-");
  return hex;
}

std::string file_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || (c == '.' && !out.empty());
    out += plain ? c : '-';
  }
  return out.empty() ? "-" : out;
}

}  // namespace proctor
