#include "coordinator/shell/status.h"

#include <algorithm>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/caps.h"

namespace proctor {
namespace {
std::string duration(std::int64_t ms) {
  if (ms < 0) return "unknown";
  const std::int64_t seconds = (ms + 999) / 1000;
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (seconds < 3600) return std::to_string(seconds / 60) + ":" + two(seconds % 60);
  return std::to_string(seconds / 3600) + ":" + two(seconds / 60 % 60) + ":" + two(seconds % 60);
}

std::string bar(std::uint64_t part, std::uint64_t whole, std::size_t width) {
  const std::size_t full =
      whole == 0 ? 0 : static_cast<std::size_t>(std::min(part, whole) * width / whole);
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

std::string outcomes(const StatusSnapshot& s) {
  return std::to_string(s.ended[0]) + " success, " + std::to_string(s.ended[1]) + " failure, " +
         std::to_string(s.ended[2]) + " acceptance error, " + std::to_string(s.ended[3]) +
         " invalid";
}

// What is left takes as long as the runs so far did on average; with few of them that may be far
// off, so the bounds stand beside it.
std::string eta(const StatusSnapshot& s) {
  if (!s.eta_waits.empty())
    return " | ETA unknown: it waits for " + printable(s.eta_waits, limits::kDetailBytes);
  if (s.eta_ms < 0) return "";
  std::string out = " | ETA " + duration(s.eta_ms);
  if (0 <= s.eta_low_ms)
    out += " (" + duration(s.eta_low_ms) + " to " +
           (0 <= s.eta_high_ms ? duration(s.eta_high_ms) : "unknown") + ")";
  return out;
}

// ", since T, until U": of a worker that is not simply at work.
std::string how_long(const StatusSnapshot::Worker& w) {
  if (w.state == "ready") return "";
  std::string out;
  if (0 < w.since.raw()) out += " since " + to_rfc3339(w.since);
  if (0 < w.until.raw())
    out += (w.state == "suspect" ? ", its runs are taken for lost at " : ", until ") +
           to_rfc3339(w.until);
  return out;
}
}  // namespace

void keep_latest(StatusSnapshot& s) {
  constexpr std::size_t kShown = StatusSnapshot::kAlertsShown;
  std::ranges::stable_sort(s.alerts, {}, &StatusSnapshot::Told::at);
  if (s.alerts.size() <= kShown) return;
  const std::size_t older = s.alerts.size() - kShown;
  s.alerts_before += older;
  s.alerts.erase(s.alerts.begin(), s.alerts.begin() + static_cast<std::ptrdiff_t>(older));
}

std::string status_text(const StatusSnapshot& s) {
  return to_json(s).dump(1, Json::Utf8::kReplace, true) + "\n";
}

Result<StatusSnapshot> parse_status(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text));
  auto out = from_json<StatusSnapshot>(json, "", Errc::kCorrupt, Versions::kAny);
  if (!out.ok()) return in_context("status.json", std::move(out).error());
  return out;
}

std::string progress_line(const StatusSnapshot& s, std::size_t columns) {
  constexpr std::size_t kBar = 20;
  std::string line = bar(s.done() + s.parked + s.cancelled, s.planned, kBar) + " " +
                     std::to_string(s.done()) + "/" + std::to_string(s.planned) + " done, " +
                     std::to_string(s.active) + " running";
  for (const auto& [count, word] :
       {std::pair{s.parked, " parked"},
        {s.held, s.held == 1 ? " waits for a person" : " wait for a person"},
        {s.cancelled, " cancelled"},
        {s.removed, " removed"},
        {s.in_backoff, " to be tried again"}})
    if (0 < count) line += ", " + std::to_string(count) + word;
  line += " | " + outcomes(s);
  if (!s.envelopes.empty())
    line += " | " + format_usd(s.envelopes[0].spent) +
            (s.envelopes[0].cap == kLedgerMax ? "" : " of " + format_usd(s.envelopes[0].cap)) +
            " " + s.unit;
  if (s.state != "running") line += " | " + printable(s.state, limits::kDetailBytes);
  line += eta(s);
  if (0 < columns && columns < line.size()) line.resize(columns);
  return line;
}

std::string describe(const StatusSnapshot& s) {
  std::string out = "campaign " + printable(s.campaign) + ": " +
                    printable(s.state, limits::kDetailBytes) + " (as of " + to_rfc3339(s.at) +
                    (s.pid == 0 ? ", no coordinator" : ", coordinator " + std::to_string(s.pid)) +
                    ")\n";
  out += progress_line(s, 0) +
         "\n\nenvelope                        cap        spent     reserved      metered  used\n";
  for (const auto& e : s.envelopes) {
    const auto column = [](const std::string& text, std::size_t width) {
      return (text.size() < width ? std::string(width - text.size(), ' ') : " ") + text;
    };
    std::string name = printable(e.name);
    name.resize(std::max<std::size_t>(name.size(), 22), ' ');
    constexpr std::size_t kMoney = 13;
    constexpr std::uint64_t kBarWidth = 20;
    out += name + column(e.cap == kLedgerMax ? "none" : format_usd(e.cap), kMoney) +
           column(format_usd(e.spent), kMoney) + column(format_usd(e.reserved), kMoney) +
           column(format_usd(e.metered), kMoney) + "  " +
           bar(static_cast<std::uint64_t>((e.spent + e.reserved).micros()),
               static_cast<std::uint64_t>(e.cap.micros()), kBarWidth) +
           "\n";
  }
  out.append(kCapsArePolicy).append("\n");
  if (!s.alerts.empty()) out += "\nalerts\n";
  if (0 < s.alerts_before) out += "  " + std::to_string(s.alerts_before) + " earlier ones\n";
  for (const auto& a : s.alerts)
    out += "  " + to_rfc3339(a.at) + "  " + printable(a.text, limits::kDetailBytes) + "\n";
  if (s.gate)
    out += "\nstage " + printable(s.gate->stage) + " " +
           printable(s.gate->text, limits::kDetailBytes) + "\n  " + std::to_string(s.gate->behind) +
           (s.gate->behind == 1 ? " run is" : " runs are") + " behind that gate\n";
  if (!s.broken.empty()) out += "\nparked because it is broken\n";
  for (const auto& b : s.broken)
    out += "  " + printable(b.run + ": " + b.text, limits::kDetailBytes) + "\n";
  out += "\nworkers\n";
  for (const auto& w : s.workers)
    out += "  " + printable(w.name) + ": " + printable(w.state, limits::kDetailBytes) +
           how_long(w) + ", " + std::to_string(w.held) + " of " + std::to_string(w.slots) +
           " slots in use, offers " + printable(w.offers) + "\n";
  std::string more;
  for (const auto& [state, n] : s.workers_more)
    more += (more.empty() ? "" : ", ") + std::to_string(n) + " " + printable(state);
  if (!more.empty()) out += "  and " + more + " besides\n";
  if (s.workers.empty()) out += "  none has joined\n";
  return out;
}
}  // namespace proctor
