#include "coordinator/aggregate/format.h"

#include <fmt/format.h>
#include <cmath>
#include <limits>

#include "common/base/text.h"

namespace proctor::aggregate {
namespace {
// One decimal, halves away from zero; by integers, so that no locale has a say.
std::string one_decimal(double value) {
  const long long tenths = std::llround(value * 10);
  const long long size = std::abs(tenths);
  return (tenths < 0 ? "-" : "") + std::to_string(size / 10) + "." + std::to_string(size % 10);
}
}  // namespace

void append_wrapped(std::string& out, const std::string& first, std::string_view words) {
  constexpr std::size_t kTextWidth = 100;
  std::string line = first;
  // Where nothing but its column tells an entry, no line of its words may begin there.
  const bool bare = first.find_first_not_of(' ') == std::string::npos;
  const std::size_t indent = first.size() + (bare ? 4 : 0);
  bool is_empty = true;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (!is_empty && kTextWidth < line.size() + 1 + end) {
      out += line + "\n";
      line.assign(indent, ' ');
      is_empty = true;
    }
    if (!is_empty) line += ' ';
    line += words.substr(0, end);
    is_empty = false;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  out += line + "\n";
}

std::string percent(double rate) {
  return one_decimal(rate * 100);
}

std::string confidence(double alpha) {
  std::string text = percent(1 - alpha);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " %";
}

std::string percent_interval(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  // What is stored is not clamped; what is shown is.
  return "[" + percent(std::clamp(interval->low, 0.0, 1.0)) + ", " +
         percent(std::clamp(interval->high, 0.0, 1.0)) + "]";
}

std::string percent_with_interval(const std::optional<double>& rate,
                                  const std::optional<Interval>& interval) {
  if (!rate) return "-";
  return percent(*rate) + " % " + percent_interval(interval);
}

Interval shown_difference(const Interval& difference) {
  return {std::clamp(difference.low, -1.0, 1.0), std::clamp(difference.high, -1.0, 1.0)};
}

std::string points(double difference) {
  return fmt::format("{:+.1f}", difference * 100);
}

std::string points_between(const Interval& difference) {
  const Interval shown = shown_difference(difference);
  return "[" + points(shown.low) + ", " + points(shown.high) + "]";
}

std::string listed_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + printable(name);
  return out;
}

std::string runs_line(const ReportRow& row) {
  std::string out = fmt::format("{} planned, {} ended, {} parked, {} open",
                                counted(row.planned, "run"), row.ended(), row.parked, row.open);
  if (0 < row.cancelled) out += fmt::format(", {} cancelled", row.cancelled);
  if (0 < row.removed) out += fmt::format(", {} removed", row.removed);
  return out;
}

std::string seconds(const std::optional<double>& ms) {
  return ms ? one_decimal(*ms / 1000) : "-";
}

std::string p_words(double p) {
  return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p);
}

std::string stratum_name(const ReportRow& row) {
  return row.key.empty() ? "all" : printable(row.key) + "=" + printable(row.value);
}

std::string row_group(const ReportRow& row) {
  return stratum_name(row) + (row.is_control ? ", controls" : "");
}

bool shows_self_reported(const CampaignReport& report) {
  return report.total.self_reported.any() ||
         std::ranges::any_of(report.rows, [](const ReportRow& r) { return r.unmetered(); });
}

std::string self_reported_cell(const ReportRow& row) {
  return row.unmetered() ? "unmetered" : format_usd(row.self_reported.usd);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c) {
  __extension__ using Wide = __int128;
  const Wide value = static_cast<Wide>(a) * b / c;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return value < kMost ? static_cast<std::int64_t>(value) : kMost;
}
}  // namespace proctor::aggregate
