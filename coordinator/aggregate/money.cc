#include "coordinator/aggregate/money.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/caps.h"
#include "coordinator/aggregate/canvas.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
using aggregate::scaled;
using Attempt = MoneyInput::Attempt;

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kWindowMs = 600'000;  // "lately"
constexpr std::int64_t kLeastMs = 5'000;     // from a shorter time nothing is foretold

// The time from which money spent counts as "lately", and how long that was.
struct Window {
  std::int64_t from = 0, length = 0;
};
Window window_of(const MoneyInput& input) {
  std::int64_t first = 0, last = 0;
  for (const Attempt& a : input.attempts) {
    if (a.granted_at.raw() != 0)
      first = first == 0 ? a.granted_at.raw() : std::min(first, a.granted_at.raw());
    last = std::max(last, a.settled_at.raw());
  }
  if (first == 0) return {};
  if (!input.running) return {first, last - first};
  const std::int64_t from = std::max(first, input.now.raw() - kWindowMs);
  return {from, input.now.raw() - from};
}

void foretell(EnvelopeMoney& e, const MoneyInput& input, const Window& window, MicroUsd lately) {
  if (window.length < kLeastMs || lately <= MicroUsd::zero()) return;
  e.per_hour = MicroUsd::from_micros(scaled(lately.micros(), kHourMs, window.length));
  const MicroUsd left = e.cap - e.spent;
  if (!input.running) return;
  const std::int64_t ms = scaled(left.micros(), window.length, lately.micros());
  constexpr std::int64_t kFarMs = kHourMs * 24 * 3650;  // ten years: never
  if (ms < kFarMs) e.used_up_at = WallTime(input.now.raw() + ms);
}

bool is_shared(const std::string& name) {
  return name.starts_with("shared:");
}

bool is_across(const std::string& name) {
  return name.starts_with("method:") || name.starts_with("stratum:") || is_shared(name);
}

std::uint32_t depth_of(const std::string& name, bool one_stage) {
  if (name.starts_with("stage:")) return 1;
  // Tasks run in every stage: with one stage they are inside it, else beside the stages.
  return name.starts_with("task:") ? (one_stage ? 2 : 1) : is_across(name) ? 1 : 0;
}

// Adds an attempt to an envelope or a group.
void add_attempt(auto& to, const Attempt& a) {
  if (a.money == Attempt::Money::kSettled) {
    to.spent = to.spent + a.charged;
    to.self_reported = to.self_reported + a.self_reported.total();
  } else if (a.money != Attempt::Money::kNone) {
    to.reserved = to.reserved + a.ask;
    if (a.money == Attempt::Money::kAtRisk) to.at_risk = to.at_risk + a.ask;
  }
}

// The least that a run asks for that is parked there.
std::optional<MicroUsd> least_ask(const MoneyInput& input, std::size_t scope) {
  std::optional<MicroUsd> least;
  for (const MoneyInput::Parked& p : input.parked)
    if (const MicroUsd ask = input.runs[p.run].ask; p.scope == scope)
      least = least ? std::min(*least, ask) : ask;
  return least;
}
}  // namespace

MoneyView build_money(const MoneyInput& input) {
  MoneyView view{input.campaign, input.unit, input.now, input.running, {}, input.dominant, {}};
  const auto stages = std::ranges::count_if(
      input.scopes, [](const auto& s) { return s.name.starts_with("stage:"); });
  for (const MoneyInput::Scope& s : input.scopes) {
    EnvelopeMoney e;
    e.name = s.name;
    e.depth = depth_of(s.name, stages == 1);
    e.across = is_across(s.name);
    e.cap = s.cap;
    view.envelopes.push_back(std::move(e));
  }
  const Window window = window_of(input);
  std::vector<MicroUsd> lately(view.envelopes.size());
  for (const Attempt& a : input.attempts) {
    view.overrun = view.overrun + a.overrun;
    for (const std::uint32_t s : input.runs[a.run].path) {
      add_attempt(view.envelopes[s], a);
      if (a.money == Attempt::Money::kSettled && window.from <= a.settled_at.raw())
        lately[s] = lately[s] + a.charged;
    }
  }
  // People's time has no rate of its own: `lately` is of attempts.
  for (const MoneyInput::Review& r : input.reviews)
    for (const std::uint32_t s : input.runs[r.run].path)
      view.envelopes[s].spent = view.envelopes[s].spent + r.charged;
  std::vector<MicroUsd> asked(view.envelopes.size());
  for (const MoneyInput::Parked& p : input.parked) {
    EnvelopeMoney& e = view.envelopes[p.scope];
    e.short_least = e.parked++ == 0 ? p.short_by : std::min(e.short_least, p.short_by);
    e.short_most = std::max(e.short_most, p.short_by);
    asked[p.scope] = asked[p.scope] + input.runs[p.run].ask;
    if (!is_shared(e.name)) continue;
    const MicroUsd held = e.cap + p.short_by - input.runs[p.run].ask;  // by all, at the refusal
    if (e.spent + e.reserved + e.elsewhere < held) e.elsewhere = held - e.spent - e.reserved;
  }
  for (std::size_t s = 0; s < view.envelopes.size(); ++s) {
    EnvelopeMoney& e = view.envelopes[s];
    if (const auto& metered = input.scopes[s].metered) e.metered = std::min(*metered, e.reserved);
    const MicroUsd room = e.free() - e.elsewhere;
    if (room < asked[s]) e.wanted = asked[s] - room;
    foretell(e, input, window, lately[s]);
  }
  for (const MoneyInput::Alert& a : input.alerts) view.envelopes[a.scope].alerts.push_back(a);
  for (const MoneyInput::Raise& r : input.raises)
    if (!view.envelopes[r.scope].declared_cap) view.envelopes[r.scope].declared_cap = r.from;
  return view;
}

namespace {
std::vector<MoneyGroup> by_category(const MoneyInput& input) {
  std::vector<MoneyGroup> out(kCostCategories.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].name = kCostCategories[i];
  std::array<std::vector<bool>, 4> counted;
  for (std::vector<bool>& runs : counted) runs.resize(input.runs.size());
  const auto count_run = [&](std::size_t category, std::uint32_t run) {
    if (!counted[category][run]) ++out[category].runs;
    counted[category][run] = true;
  };
  for (const Attempt& a : input.attempts) {
    if (a.money != Attempt::Money::kSettled) continue;
    const std::array<MicroUsd, 4> parts = {a.cost.model, a.cost.execution, a.cost.human,
                                           a.cost.overhead};
    out[0].self_reported = out[0].self_reported + a.self_reported.model;
    out[1].self_reported = out[1].self_reported + a.self_reported.execution;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out[i].spent = out[i].spent + parts[i];
      if (parts[i] == MicroUsd::zero()) continue;
      ++out[i].attempts;
      count_run(i, a.run);
    }
  }
  for (const MoneyInput::Review& r : input.reviews) {
    out[2].spent = out[2].spent + r.charged;
    ++out[2].attempts;
    count_run(2, r.run);
  }
  return out;
}

std::vector<std::string> names_of(const MoneyInput& input, const MoneyInput::Run& run, MoneyBy by) {
  if (by == MoneyBy::kMethod) return {run.method};
  if (by == MoneyBy::kTask) return {run.task};
  std::vector<std::string> out;
  for (std::size_t k = 0; k < run.strata.size(); ++k)
    out.push_back(input.strata_keys[k] + "=" + run.strata[k]);
  return out;
}
}  // namespace

std::vector<MoneyGroup> group_money(const MoneyInput& input, MoneyBy by) {
  if (by == MoneyBy::kCategory) return by_category(input);
  std::map<std::string, MoneyGroup> groups;
  std::vector<std::vector<MoneyGroup*>> of_run;
  for (const MoneyInput::Run& run : input.runs) {
    auto& mine = of_run.emplace_back();
    for (std::string& name : names_of(input, run, by)) {
      MoneyGroup& g = groups[name];
      g.name = std::move(name);
      mine.push_back(&g);
    }
  }
  std::vector<bool> granted(input.runs.size(), false);
  for (const Attempt& a : input.attempts) {
    for (MoneyGroup* g : of_run[a.run]) {
      if (a.granted_at.raw() != 0 && !granted[a.run]) ++g->runs;
      g->attempts += a.money == Attempt::Money::kSettled ? 1 : 0;
      add_attempt(*g, a);
    }
    if (a.granted_at.raw() != 0) granted[a.run] = true;
  }
  for (const MoneyInput::Review& r : input.reviews)
    for (MoneyGroup* g : of_run[r.run]) g->spent = g->spent + r.charged;
  for (const MoneyInput::Parked& p : input.parked)
    for (MoneyGroup* g : of_run[p.run]) ++g->parked;
  std::vector<MoneyGroup> out;
  for (auto& [name, group] : groups) out.push_back(std::move(group));
  return out;
}

namespace {
std::string meant_name(const MoneyView& view, std::string_view scope) {
  std::vector<std::string_view> names;
  for (const EnvelopeMoney& e : view.envelopes) names.push_back(e.name);
  const auto near = nearest_word(scope, names);
  return near ? " (did you mean " + *near + "?)" : "";
}

std::string known_names(const MoneyView& view) {
  constexpr std::size_t kShown = 12;
  std::string out;
  for (std::size_t i = 0; i < view.envelopes.size() && i < kShown; ++i)
    out += (i == 0 ? "" : ", ") + view.envelopes[i].name;
  return view.envelopes.size() <= kShown ? out : out + ", ...";
}
}  // namespace

std::vector<ReviewShort> check_review(const MoneyInput& input, std::uint32_t run, MicroUsd cost) {
  const MoneyView view = build_money(input);
  std::vector<ReviewShort> out;
  for (const std::uint32_t s : input.runs[run].path) {
    const EnvelopeMoney& e = view.envelopes[s];
    if (cost <= e.free()) continue;
    ReviewShort entry{e.name, e.cap, e.spent, e.reserved, cost - e.free(), {}};
    const MicroUsd room = std::max(cost, least_ask(input, s).value_or(cost));
    entry.raise_to = e.spent + e.reserved + room;
    out.push_back(std::move(entry));
  }
  return out;
}

Status check_raise(const MoneyInput& input, std::string_view scope, MicroUsd to) {
  const MoneyView view = build_money(input);
  const auto found = std::ranges::find(view.envelopes, scope, &EnvelopeMoney::name);
  if (found == view.envelopes.end())
    return Error{Errc::kNotFound, fmt::format("there is no envelope \"{}\"{}; this campaign has {}",
                                              scope, meant_name(view, scope), known_names(view))};
  const EnvelopeMoney& e = *found;
  const auto refuse = [&](const std::string& why) {
    return Error{Errc::kInvalid,
                 fmt::format("raise {} to {} {}: {}", e.name, format_usd(to), view.unit, why)};
  };
  if (to < e.spent + e.reserved)
    return refuse(fmt::format("{} {} are spent there and {} reserved, together {}",
                              format_usd(e.spent), view.unit, format_usd(e.reserved),
                              format_usd(e.spent + e.reserved)));
  if (to <= e.cap) return refuse("its cap is " + format_usd(e.cap) + " " + view.unit + " already");
  const EnvelopeMoney& global = view.envelopes[0];
  const bool around = !is_shared(e.name);  // that one is around global
  if (&e != &global && around && global.cap < to)
    return refuse("the envelope around it, global, holds only " + format_usd(global.cap) + " " +
                  view.unit + "; raise that first");
  const auto least = least_ask(input, static_cast<std::size_t>(found - view.envelopes.begin()));
  const MicroUsd held = e.spent + e.reserved + e.elsewhere;
  if (least && to < held + *least)
    return refuse(fmt::format(
        "none of the runs parked there could start; that needs at least {} {} ({} spent, {} "
        "reserved, {}{} for one run)",
        format_usd(held + *least), view.unit, format_usd(e.spent), format_usd(e.reserved),
        e.elsewhere == MicroUsd::zero()
            ? ""
            : format_usd(e.elsewhere) + " held by the campaigns that share it, ",
        format_usd(*least)));
  return ok_status();
}

// `proctor budget` on a terminal and for programs.

namespace {
using namespace aggregate;

constexpr std::size_t kToldBytes = 400;

void append_notes(std::string& out, const EnvelopeMoney& e, const std::string& unit) {
  const auto note = [&](const std::string& words) {
    out += "  " + printable(e.name) + ": " + words + "\n";
  };
  if (0 < e.parked)
    note(fmt::format("{} parked, short by {}{} {}; for all of them it must hold {}",
                     e.parked == 1 ? "1 run is" : fmt::format("{} runs are", e.parked),
                     format_usd(e.short_least),
                     e.short_least == e.short_most ? "" : " to " + format_usd(e.short_most), unit,
                     format_usd(e.cap + e.wanted)));
  if (MicroUsd::zero() < e.at_risk)
    note(
        fmt::format("{} {} are held for attempts nobody hears of (charged in full if they stay "
                    "lost)",
                    format_usd(e.at_risk), unit));
  if (!e.alerts.empty()) {
    const MoneyInput::Alert& a = e.alerts.back();
    note(fmt::format("{} % of {} {} were spent at {}", a.percent, format_usd(a.cap), unit,
                     to_rfc3339(a.at)));
  }
  if (e.declared_cap)
    note(fmt::format("raised from the registered {} {}, a declared deviation",
                     format_usd(*e.declared_cap), unit));
  if (e.depth == 0 && e.used_up_at) note("at this rate used up at " + to_rfc3339(*e.used_up_at));
}

bool tells_of_itself(const auto& records) {
  return std::ranges::any_of(records,
                             [](const auto& r) { return r.self_reported != MicroUsd::zero(); });
}
}  // namespace

std::string render_money_text(const MoneyView& view) {
  std::string out =
      fmt::format("Campaign {}, {}, {}; amounts in {}\n\n", printable(view.campaign),
                  to_rfc3339(view.at), view.running ? "running" : "not running", view.unit);
  const bool told = tells_of_itself(view.envelopes);
  const auto columns = envelope_columns().named(
      std::string("envelope|=bar|cap|spent|reserved|metered|free|at risk|parked|per hour") +
      (told ? "|self_reported" : ""));
  Table table(titles_of(columns), 1, Table::Rule::kNone);
  bool crossed = false;
  for (const EnvelopeMoney& e : view.envelopes) {
    if (e.across && !std::exchange(crossed, true)) table.add({"across the tree:"});
    table.add(cells_of(columns, e));
  }
  table.append_to(out);
  if (told) out += "\nself_reported: the part of what is spent that agents said of themselves\n";
  out += "\n# spent  + reserved  ? reserved and at risk  . free\n";
  out.append(kCapsArePolicy).append("\n");
  std::string notes;
  for (const EnvelopeMoney& e : view.envelopes) append_notes(notes, e, view.unit);
  if (MicroUsd::zero() < view.overrun)
    notes +=
        "  metered above what was reserved, charged to no envelope: " + format_usd(view.overrun) +
        " " + view.unit + "\n";
  for (const MoneyInput::Told& d : view.dominant)
    notes += "  " + to_rfc3339(d.at) + " " + printable(d.text, kToldBytes) + "\n";
  if (!notes.empty()) out += "\n" + notes;
  return out;
}

std::string render_groups_text(const std::vector<MoneyGroup>& groups) {
  std::string out = "\n", words = "group|spent|reserved|at risk|runs|attempts|parked";
  if (tells_of_itself(groups)) words += "|self_reported";
  table_of(group_columns(), words, groups, ungrouped<MoneyGroup>, 1, Table::Rule::kNone)
      .append_to(out);
  return out;
}

std::string render_money_json(const MoneyView& view, std::string_view by,
                              const std::vector<MoneyGroup>& groups) {
  const auto told = [](const MoneyInput::Told& d) {
    return filled(R"({"at":$,"text":$})", {to_rfc3339(d.at), d.text});
  };
  return filled(
             R"({"schema_version":1,"campaign":$,"at":$,"running":$,"unit":$,"overrun":$,)"
             R"("envelopes":@,"dominant":@)",
             {view.campaign, to_rfc3339(view.at), view.running, view.unit, money_json(view.overrun),
              listed_rows(envelope_columns(), view.envelopes), listed(view.dominant, told)}) +
         (by.empty()
              ? ""
              : filled(R"(,"by":$,"groups":@)", {by, listed_rows(group_columns(), groups)})) +
         "}\n";
}

std::vector<MoneyStep> money_steps(const MoneyInput& input, std::uint32_t scope,
                                   std::span<const MoneyInput::Review> reviews) {
  std::vector<MoneyStep> out;
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
  for (const MoneyInput::Review& r : reviews) {
    const auto& path = input.runs[r.run].path;
    if (std::ranges::find(path, scope) != path.end()) out.push_back({r.at.raw(), r.charged, none});
  }
  std::ranges::stable_sort(out, {}, [](const MoneyStep& s) { return std::pair(s.at, s.reserved); });
  return out;
}

// How the money went: a panel for each envelope that matters, time to the right, dollars upward,
// what is spent (dark) and reserved on top of it (light) under the cap (a line; a raise is a step
// in it).  Drawn from the journal's own times.

namespace {
constexpr int kPlot = 640;  // pixels of the whole time
constexpr double kLeft = 130, kRight = kLeft + kPlot;
constexpr int kWidth = 920;
constexpr int kTop = 66;
constexpr int kPanel = 120;
constexpr int kGap = 64;
constexpr std::size_t kPanelsMax = 8;
constexpr std::size_t kLabelBytes = 60;

struct Span {
  std::int64_t from = 0, to = 0;
  double x(std::int64_t at) const {
    const std::int64_t length = std::max<std::int64_t>(to - from, 1);
    const std::int64_t clamped = std::clamp(at, from, to) - from;
    return kLeft + static_cast<double>(scaled(clamped, kPlot, length));
  }
};

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
  Panel(const MoneyInput& input, std::uint32_t scope, const Span& span, double top)
      : input_(input), scope_(scope), span_(span), top_(top) {
    cap_ = input.scopes[scope].cap;
    most_ = std::max(cap_ == kLedgerMax ? MicroUsd() : cap_, MicroUsd::from_micros(1));
    for (const MoneyInput::Raise& r : input.raises) {
      if (r.scope != scope) continue;
      if (raises_.empty()) cap_ = r.from;
      raises_.push_back(r);
    }
    MicroUsd level;
    for (const MoneyStep& s : steps_) {
      level = level + s.spent + s.reserved;
      most_ = std::max(most_, level);
    }
  }

  void draw(Canvas& canvas) const {
    const MoneyInput::Scope& scope = input_.scopes[scope_];
    canvas.words("group", {kLeft, top_ - 8}, text(scope.name, kLabelBytes));
    axes(canvas);
    areas(canvas);
    if (scope.cap == kLedgerMax) return;  // a regrade has none
    cap_line(canvas);
    canvas.words("number", {kRight + 8, y(scope.cap) + 4}, Markup("cap ") + amount(scope.cap));
  }

 private:
  double y(MicroUsd level) const {
    return base_ - static_cast<double>(scaled(level.micros(), kPanel, most_.micros()));
  }
  Markup amount(MicroUsd of) const { return text(format_usd(of) + " " + input_.unit); }

  void axes(Canvas& canvas) const {
    for (const MicroUsd level :
         {MicroUsd::zero(), MicroUsd::from_micros(most_.micros() / 2), most_}) {
      canvas.line("grid", {kLeft, y(level)}, {kRight, y(level)});
      canvas.words_end("quiet", {kLeft - 8, y(level) + 4}, amount(level));
    }
    const std::int64_t tick = tick_ms(span_.to - span_.from);
    for (std::int64_t at = 0; at <= span_.to - span_.from; at += tick) {
      const double x = span_.x(span_.from + at);
      canvas.line("axis", {x, base_}, {x, base_ + 4});
      canvas.words("quiet", {x - 6, base_ + 18}, text(duration(at)));
    }
    canvas.line("axis", {kLeft, base_}, {kRight, base_});
    canvas.line("axis", {kLeft, top_}, {kLeft, base_});
  }

  // One step per pixel column: what was spent at its end, and the most that was out within it.
  void areas(Canvas& canvas) const {
    std::string spent_path = fmt::format("M{} {}", kLeft, base_), out_path = spent_path;
    MicroUsd spent, reserved, peak;
    const auto put = [&](double x) {
      spent_path += step(x, y(spent));
      out_path += step(x, y(peak));
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      spent = spent + steps_[i].spent;
      reserved = reserved + steps_[i].reserved;
      peak = std::max(peak, spent + reserved);
      const double x = span_.x(steps_[i].at);
      if (i + 1 < steps_.size() && span_.x(steps_[i + 1].at) == x) continue;
      put(x);
      if (peak == spent + reserved) continue;
      peak = spent + reserved;  // it was higher within the column: there only
      out_path += step(x + 1, y(peak));
    }
    put(kRight);
    const std::string end = fmt::format(" V{} Z", base_);
    canvas.path("held", out_path + end);
    canvas.path("spent", spent_path + end);
  }

  void cap_line(Canvas& canvas) const {
    std::string path = fmt::format("M{} {}", kLeft, y(cap_));
    for (const MoneyInput::Raise& r : raises_) path += step(span_.x(r.at.raw()), y(r.to));
    canvas.path("cap", path + fmt::format(" H{}", kRight));
  }

  // Across to `x`, then up or down to `y`.
  static std::string step(double x, double y) { return fmt::format(" H{} V{}", x, y); }

  const MoneyInput& input_;
  std::uint32_t scope_;
  Span span_;
  double top_, base_ = top_ + kPanel;
  std::vector<MoneyStep> steps_ = money_steps(input_, scope_, input_.reviews);
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
  Canvas canvas(kWidth, height, Canvas::For::kFile);
  canvas.words("title", {16, 24}, "Money spent and reserved, under the caps");
  const std::string since =
      span.from == 0 ? "nothing was reserved yet" : "time since " + to_rfc3339(WallTime(span.from));
  canvas.words("quiet", {16, 42},
               text(input.campaign, 120) + "; dark: spent, light: reserved, dashed line: cap; " +
                   text(since));
  double top = kTop + 14;
  for (const std::uint32_t scope : panels) {
    Panel(input, scope, span, top).draw(canvas);
    top += kPanel + kGap;
  }
  if (panels.size() < view.envelopes.size())
    canvas.words("quiet", {16, height - 10.0},
                 "envelopes without a cap of their own, or less full than these, are not drawn");
  return canvas.file(Markup("Money of campaign ") + text(input.campaign, 200),
                     ".group{font-weight:bold}.quiet{fill:#57606a;font-size:12px}"
                     ".number{font-size:12px}.spent{fill:#2f5d8c}.held{fill:#b9d0e8}"
                     ".cap{stroke:#1b1f24;stroke-width:2;fill:none;stroke-dasharray:6 3}"
                     ".grid{stroke:#d0d7de}.axis{stroke:#57606a}");
}
}  // namespace proctor
