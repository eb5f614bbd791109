// How the money went: a panel for each envelope that matters, time to the right, dollars upward,
// what is spent (dark) and reserved on top of it (light) under the cap (a line; a raise is a step
// in it).  Drawn from the journal's own times.  Plain SVG 1.1, no script, readable without colour.
#include <algorithm>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/aggregate/svg.h"

namespace proctor {
namespace {

using namespace aggregate;
using Attempt = MoneyInput::Attempt;

constexpr int kLeft = 130;
constexpr int kPlot = 640;  // pixels of the whole time
constexpr int kWidth = kLeft + kPlot + 150;
constexpr int kTop = 66;
constexpr int kPanel = 120;
constexpr int kGap = 64;
constexpr std::size_t kPanelsMax = 8;
constexpr std::size_t kLabelBytes = 60;

struct Step {
  std::int64_t at = 0;
  MicroUsd spent, reserved;  // changes
};

struct Span {
  std::int64_t from = 0, to = 0;
  int x(std::int64_t at) const {
    const std::int64_t length = std::max<std::int64_t>(to - from, 1);
    const std::int64_t clamped = std::clamp(at, from, to) - from;
    return kLeft + static_cast<int>(scaled(clamped, kPlot, length));
  }
};

std::vector<Step> steps_of(const MoneyInput& input, std::uint32_t scope) {
  std::vector<Step> out;
  const MicroUsd none;
  for (const Attempt& a : input.attempts) {
    if (std::ranges::find(input.runs[a.run].path, scope) == input.runs[a.run].path.end()) continue;
    if (a.granted_at.raw() != 0) out.push_back({a.granted_at.raw(), none, a.ask});
    const MicroUsd held = a.granted_at.raw() != 0 ? none - a.ask : none;
    if (a.money == Attempt::Money::kSettled) out.push_back({a.settled_at.raw(), a.charged, held});
    if (a.money == Attempt::Money::kNone && a.returned_at.raw() != 0)
      out.push_back({a.returned_at.raw(), none, held});
  }
  // Booked after the campaign, perhaps days later: it stands at the right edge, span_of() does not
  // grow for it.
  for (const MoneyInput::Review& r : input.reviews) {
    const auto& path = input.runs[r.run].path;
    if (std::ranges::find(path, scope) != path.end()) out.push_back({r.at.raw(), r.charged, none});
  }
  // At one instant money comes back before it goes out again.
  std::ranges::stable_sort(out, [](const Step& a, const Step& b) {
    return a.at != b.at ? a.at < b.at : a.reserved < b.reserved;
  });
  return out;
}

Span span_of(const MoneyInput& input) {
  Span span;
  const auto see = [&](WallTime at) {
    if (at.raw() == 0) return;
    span.from = span.from == 0 ? at.raw() : std::min(span.from, at.raw());
    span.to = std::max(span.to, at.raw());
  };
  for (const Attempt& a : input.attempts) {
    see(a.granted_at);
    see(a.settled_at);
    if (a.granted_at.raw() != 0) see(a.returned_at);
  }
  if (span.from == 0) return span;
  for (const MoneyInput::Raise& r : input.raises) see(r.at);
  if (input.running) see(input.now);
  return span;
}

// "0 s", "90 s", "25 min", "3 h": whole steps, at most seven of them.
std::int64_t tick_ms(std::int64_t length) {
  constexpr std::int64_t kSecond = 1000, kMinute = 60'000, kHour = 3'600'000;
  for (const std::int64_t step :
       {kSecond, 2 * kSecond, 5 * kSecond, 10 * kSecond, 30 * kSecond, kMinute, 2 * kMinute,
        5 * kMinute, 10 * kMinute, 30 * kMinute, kHour, 2 * kHour, 6 * kHour, 12 * kHour})
    if (length / step <= 7) return step;
  return std::max<std::int64_t>(24 * kHour, length / 7 / (24 * kHour) * 24 * kHour);
}
std::string duration(std::int64_t ms) {
  if (ms % 3'600'000 == 0 && ms != 0) return std::to_string(ms / 3'600'000) + " h";
  if (ms % 60'000 == 0 && ms != 0) return std::to_string(ms / 60'000) + " min";
  return std::to_string(ms / 1000) + " s";
}

class Panel {
 public:
  Panel(const MoneyInput& input, std::uint32_t scope, const Span& span, int top)
      : input_(input), scope_(scope), span_(span), top_(top), steps_(steps_of(input, scope)) {
    cap_ = input.scopes[scope].cap;
    most_ = std::max(cap_, MicroUsd::from_micros(1));
    for (const MoneyInput::Raise& r : input.raises) {
      if (r.scope != scope) continue;
      if (raises_.empty()) cap_ = r.from;
      raises_.push_back(r);
    }
    MicroUsd level;
    for (const Step& s : steps_) {
      level = level + s.spent + s.reserved;
      most_ = std::max(most_, level);
    }
  }

  void append_to(std::string& out) const {
    const MicroUsd cap = input_.scopes[scope_].cap;
    out += text(kLeft, top_ - 8, "group", escaped(input_.scopes[scope_].name, kLabelBytes));
    axes(out);
    areas(out);
    cap_line(out);
    out +=
        text(kLeft + kPlot + 8, y(cap) + 4, "number", "cap " + format_usd(cap) + " " + input_.unit);
  }

 private:
  int y(MicroUsd amount) const {
    return top_ + kPanel - static_cast<int>(scaled(amount.micros(), kPanel, most_.micros()));
  }

  void axes(std::string& out) const {
    constexpr int kLabelUp = 4;
    for (const MicroUsd level :
         {MicroUsd::zero(), MicroUsd::from_micros(most_.micros() / 2), most_}) {
      out += line(kLeft, y(level), kLeft + kPlot, y(level), "grid");
      out += "<text x=\"" + std::to_string(kLeft - 8) + "\" y=\"" +
             std::to_string(y(level) + kLabelUp) + "\" class=\"quiet\" text-anchor=\"end\">" +
             format_usd(level) + " " + input_.unit + "</text>\n";
    }
    const std::int64_t tick = tick_ms(span_.to - span_.from);
    for (std::int64_t at = 0; at <= span_.to - span_.from; at += tick) {
      const int x = span_.x(span_.from + at);
      out += line(x, top_ + kPanel, x, top_ + kPanel + 4, "axis");
      out += text(x - 6, top_ + kPanel + 18, "quiet", duration(at));
    }
    out += line(kLeft, top_ + kPanel, kLeft + kPlot, top_ + kPanel, "axis");
    out += line(kLeft, top_, kLeft, top_ + kPanel, "axis");
  }

  // One step per pixel column: what was spent at its end, and the most that was out within it.
  void areas(std::string& out) const {
    std::string spent_path, out_path;
    MicroUsd spent, reserved, peak;
    const auto put = [&](int x) {
      spent_path += " H" + std::to_string(x) + " V" + std::to_string(y(spent));
      out_path += " H" + std::to_string(x) + " V" + std::to_string(y(peak));
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      spent = spent + steps_[i].spent;
      reserved = reserved + steps_[i].reserved;
      peak = std::max(peak, spent + reserved);
      const int x = span_.x(steps_[i].at);
      if (i + 1 < steps_.size() && span_.x(steps_[i + 1].at) == x) continue;
      put(x);
      if (peak == spent + reserved) continue;
      peak = spent + reserved;  // it was higher within the column: there only
      out_path += " H" + std::to_string(x + 1) + " V" + std::to_string(y(peak));
    }
    put(kLeft + kPlot);
    const std::string base = std::to_string(top_ + kPanel);
    for (const auto& [path, style] :
         {std::pair(&out_path, "held"), std::pair(&spent_path, "spent")})
      out += "<path d=\"M" + std::to_string(kLeft) + " " + base + *path + " V" + base +
             " Z\" class=\"" + style + "\"/>\n";
  }

  void cap_line(std::string& out) const {
    MicroUsd level = cap_;
    std::string path = "M" + std::to_string(kLeft) + " " + std::to_string(y(level));
    for (const MoneyInput::Raise& r : raises_) {
      path += " H" + std::to_string(span_.x(r.at.raw())) + " V" + std::to_string(y(r.to));
      level = r.to;
    }
    path += " H" + std::to_string(kLeft + kPlot);
    out += "<path d=\"" + path + "\" class=\"cap\"/>\n";
  }

  const MoneyInput& input_;
  std::uint32_t scope_;
  Span span_;
  int top_;
  std::vector<Step> steps_;
  MicroUsd cap_;  // before the first raise
  MicroUsd most_;
  std::vector<MoneyInput::Raise> raises_;
};

// The campaign's own, then those with a cap of their own or with parked runs, fullest first.
std::vector<std::uint32_t> chosen(const MoneyInput& input, const MoneyView& view) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t s = 1; s < view.envelopes.size(); ++s) {
    const EnvelopeMoney& e = view.envelopes[s];
    if (e.cap < input.scopes[0].cap || 0 < e.parked || e.declared_cap) out.push_back(s);
  }
  const auto used = [&](std::uint32_t s) {
    const EnvelopeMoney& e = view.envelopes[s];
    constexpr std::int64_t kFull = 1'000'000;
    return scaled((e.spent + e.reserved).micros(), kFull,
                  std::max<std::int64_t>(e.cap.micros(), 1));
  };
  std::ranges::stable_sort(out,
                           [&](std::uint32_t a, std::uint32_t b) { return used(b) < used(a); });
  if (kPanelsMax - 1 < out.size()) out.resize(kPanelsMax - 1);
  out.insert(out.begin(), 0);
  return out;
}

}  // namespace

std::string render_burndown_svg(const MoneyInput& input) {
  const MoneyView view = build_money(input);
  const Span span = span_of(input);
  const std::vector<std::uint32_t> panels = chosen(input, view);
  const int height = kTop + static_cast<int>(panels.size()) * (kPanel + kGap) + 20;
  std::string out = svg_head(kWidth, height);
  out += "<title>Money of campaign " + escaped(input.campaign, 200) + "</title>\n";
  out +=
      "<style>text{font:13px sans-serif;fill:#1b1f24}.title{font-size:16px;font-weight:bold}"
      ".group{font-weight:bold}.quiet{fill:#57606a;font-size:12px}.number{font-size:12px}"
      ".spent{fill:#2f5d8c}.held{fill:#b9d0e8}.cap{stroke:#1b1f24;stroke-width:2;fill:none;"
      "stroke-dasharray:6 3}.grid{stroke:#d0d7de}.axis{stroke:#57606a}</style>\n";
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += text(16, 24, "title", "Money spent and reserved, under the caps");
  const std::string since =
      span.from == 0 ? "nothing was reserved yet" : "time since " + to_rfc3339(WallTime(span.from));
  out += text(
      16, 42, "quiet",
      escaped(input.campaign, 120) + "; dark: spent, light: reserved, dashed line: cap; " + since);
  int top = kTop + 14;
  for (const std::uint32_t scope : panels) {
    Panel(input, scope, span, top).append_to(out);
    top += kPanel + kGap;
  }
  if (panels.size() < view.envelopes.size())
    out += text(16, height - 10, "quiet",
                "envelopes without a cap of their own, or less full than these, are not drawn");
  return out + "</svg>\n";
}

}  // namespace proctor
