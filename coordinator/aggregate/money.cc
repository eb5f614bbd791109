#include "coordinator/aggregate/money.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"

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

void add_parked(EnvelopeMoney& e, MicroUsd short_by) {
  e.short_least = e.parked == 0 ? short_by : std::min(e.short_least, short_by);
  e.short_most = std::max(e.short_most, short_by);
  ++e.parked;
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
      EnvelopeMoney& e = view.envelopes[s];
      if (a.money == Attempt::Money::kSettled) {
        e.spent = e.spent + a.charged;
        e.self_reported = e.self_reported + a.self_reported.total();
        if (window.from <= a.settled_at.raw()) lately[s] = lately[s] + a.charged;
      } else if (a.money != Attempt::Money::kNone) {
        e.reserved = e.reserved + a.ask;
        if (a.money == Attempt::Money::kAtRisk) e.at_risk = e.at_risk + a.ask;
      }
    }
  }
  // People's time has no rate of its own: `lately` is of attempts.
  for (const MoneyInput::Review& r : input.reviews)
    for (const std::uint32_t s : input.runs[r.run].path)
      view.envelopes[s].spent = view.envelopes[s].spent + r.charged;
  std::vector<MicroUsd> asked(view.envelopes.size());
  for (const MoneyInput::Parked& p : input.parked) {
    add_parked(view.envelopes[p.scope], p.short_by);
    asked[p.scope] = asked[p.scope] + input.runs[p.run].ask;
    EnvelopeMoney& e = view.envelopes[p.scope];
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

std::optional<MoneyBy> money_by(std::string_view word) {
  if (word == "category") return MoneyBy::kCategory;
  if (word == "method") return MoneyBy::kMethod;
  if (word == "stratum") return MoneyBy::kStratum;
  if (word == "task") return MoneyBy::kTask;
  return std::nullopt;
}

namespace {

std::vector<MoneyGroup> by_category(const MoneyInput& input) {
  std::vector<MoneyGroup> out(4);
  out[0].name = "model";
  out[1].name = "execution";
  out[2].name = "human";
  out[3].name = "overhead";
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
      if (a.money == Attempt::Money::kSettled) {
        ++g->attempts;
        g->spent = g->spent + a.charged;
        g->self_reported = g->self_reported + a.self_reported.total();
      } else if (a.money != Attempt::Money::kNone) {
        g->reserved = g->reserved + a.ask;
        if (a.money == Attempt::Money::kAtRisk) g->at_risk = g->at_risk + a.ask;
      }
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
    MicroUsd room = cost;
    std::optional<MicroUsd> least;
    for (const MoneyInput::Parked& p : input.parked)
      if (const MicroUsd ask = input.runs[p.run].ask; p.scope == s)
        least = least ? std::min(*least, ask) : ask;
    if (least) room = std::max(room, *least);
    entry.raise_to = e.spent + e.reserved + room;
    out.push_back(std::move(entry));
  }
  return out;
}

Status check_raise(const MoneyInput& input, std::string_view scope, MicroUsd to) {
  const MoneyView view = build_money(input);
  const auto found = std::ranges::find(view.envelopes, scope, &EnvelopeMoney::name);
  if (found == view.envelopes.end())
    return Error{Errc::kNotFound, "there is no envelope \"" + std::string(scope) + "\"" +
                                      meant_name(view, scope) + "; this campaign has " +
                                      known_names(view)};
  const EnvelopeMoney& e = *found;
  const auto refuse = [&](const std::string& why) {
    return Error{Errc::kInvalid,
                 "raise " + e.name + " to " + format_usd(to) + " " + view.unit + ": " + why};
  };
  if (to < e.spent + e.reserved)
    return refuse(format_usd(e.spent) + " " + view.unit + " are spent there and " +
                  format_usd(e.reserved) + " reserved, together " +
                  format_usd(e.spent + e.reserved));
  if (to <= e.cap) return refuse("its cap is " + format_usd(e.cap) + " " + view.unit + " already");
  const EnvelopeMoney& global = view.envelopes[0];
  const bool around = !is_shared(e.name);  // that one is around global
  if (&e != &global && around && global.cap < to)
    return refuse("the envelope around it, global, holds only " + format_usd(global.cap) + " " +
                  view.unit + "; raise that first");
  std::optional<MicroUsd> least;
  const auto at = static_cast<std::uint32_t>(found - view.envelopes.begin());
  for (const MoneyInput::Parked& p : input.parked) {
    const MicroUsd ask = input.runs[p.run].ask;
    if (p.scope == at) least = least ? std::min(*least, ask) : ask;
  }
  const MicroUsd held = e.spent + e.reserved + e.elsewhere;
  if (least && to < held + *least)
    return refuse("none of the runs parked there could start; that needs at least " +
                  format_usd(held + *least) + " " + view.unit + " (" + format_usd(e.spent) +
                  " spent, " + format_usd(e.reserved) + " reserved, " +
                  (e.elsewhere == MicroUsd::zero()
                       ? ""
                       : format_usd(e.elsewhere) + " held by the campaigns that share it, ") +
                  format_usd(*least) + " for one run)");
  return ok_status();
}

}  // namespace proctor
