// `proctor budget` on a terminal and for programs.
#include <algorithm>
#include <utility>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr std::size_t kBar = 20;
constexpr std::size_t kToldBytes = 400;

std::size_t cells(MicroUsd part, MicroUsd cap) {
  if (cap <= MicroUsd::zero()) return kBar;
  const auto most = static_cast<std::int64_t>(kBar);
  // Rounded up: a cent spent is seen.
  return kBar - static_cast<std::size_t>(
                    scaled(std::max<std::int64_t>((cap - part).micros(), 0), most, cap.micros()));
}

// '#' spent, '+' reserved, '?' reserved and at risk, '.' free.
std::string bar(const EnvelopeMoney& e) {
  std::string out(kBar, '.');
  const auto fill = [&](MicroUsd until, char c) {
    for (std::size_t i = 0; i < cells(until, e.cap); ++i)
      if (out[i] == '.') out[i] = c;
  };
  fill(e.spent, '#');
  fill(e.spent + e.reserved - e.at_risk, '+');
  fill(e.spent + e.reserved, '?');
  return "[" + out + "]";
}

void append_notes(std::string& out, const EnvelopeMoney& e, const std::string& unit) {
  const std::string name = printable(e.name);
  if (0 < e.parked)
    out += "  " + name + ": " + std::to_string(e.parked) +
           (e.parked == 1 ? " run is" : " runs are") + " parked, short by " +
           format_usd(e.short_least) +
           (e.short_least == e.short_most ? "" : " to " + format_usd(e.short_most)) + " " + unit +
           "; for all of them it must hold " + format_usd(e.cap + e.wanted) + "\n";
  if (MicroUsd::zero() < e.at_risk)
    out += "  " + name + ": " + format_usd(e.at_risk) + " " + unit +
           " are held for attempts nobody hears of (charged in full if they stay lost)\n";
  if (!e.alerts.empty()) {
    const MoneyInput::Alert& a = e.alerts.back();
    out += "  " + name + ": " + std::to_string(a.percent) + " % of " + format_usd(a.cap) + " " +
           unit + " were spent at " + to_rfc3339(a.at) + "\n";
  }
  if (e.declared_cap)
    out += "  " + name + ": raised from the registered " + format_usd(*e.declared_cap) + " " +
           unit + ", a declared deviation\n";
  if (e.depth == 0 && e.used_up_at)
    out += "  " + name + ": at this rate used up at " + to_rfc3339(*e.used_up_at) + "\n";
}

Ordered envelope_json(const EnvelopeMoney& e) {
  Ordered alerts = Ordered::array();
  for (const MoneyInput::Alert& a : e.alerts)
    alerts.push_back({{"percent", a.percent},
                      {"spent", money_json(a.spent)},
                      {"cap", money_json(a.cap)},
                      {"at", to_rfc3339(a.at)}});
  Ordered out = {{"name", e.name},
                 {"depth", e.depth},
                 {"across", e.across},
                 {"cap", money_json(e.cap)},
                 {"spent", money_json(e.spent)},
                 {"self_reported", money_json(e.self_reported)},
                 {"reserved", money_json(e.reserved)},
                 {"metered", money_or_null(e.metered)},
                 {"free", money_json(e.free())},
                 {"at_risk", money_json(e.at_risk)},
                 {"denied", {{"runs", e.parked}}}};
  if (0 < e.parked) {
    out["denied"]["short_least"] = money_json(e.short_least);
    out["denied"]["short_most"] = money_json(e.short_most);
    out["denied"]["cap_for_all"] = money_json(e.cap + e.wanted);
  }
  out["per_hour"] = money_or_null(e.per_hour);
  out["used_up_at"] = e.used_up_at ? Ordered(to_rfc3339(*e.used_up_at)) : Ordered(nullptr);
  out["alerts"] = std::move(alerts);
  out["registered_cap"] = money_json(e.declared_cap.value_or(e.cap));
  return out;
}

}  // namespace

std::string render_money_text(const MoneyView& view) {
  std::string out = "Campaign " + printable(view.campaign) + ", " + to_rfc3339(view.at) + ", " +
                    (view.running ? "running" : "not running") + "; amounts in " + view.unit +
                    "\n\n";
  const bool told = std::ranges::any_of(
      view.envelopes, [](const EnvelopeMoney& e) { return e.self_reported != MicroUsd::zero(); });
  const auto with = [&](std::vector<std::string> cells, std::string self_reported) {
    if (told) cells.push_back(std::move(self_reported));
    return cells;
  };
  Table table(with({"envelope", "", "cap", "spent", "reserved", "metered", "free", "at risk",
                    "parked", "per hour"},
                   "self_reported"),
              1, Table::Rule::kNone);
  bool crossed = false;
  for (const EnvelopeMoney& e : view.envelopes) {
    if (e.across && !std::exchange(crossed, true))
      table.add(with({"across the tree:", "", "", "", "", "", "", "", "", ""}, ""));
    table.add(
        with({std::string(e.depth * 2, ' ') + printable(e.name), bar(e), format_usd(e.cap),
              format_usd(e.spent), format_usd(e.reserved), e.metered ? format_usd(*e.metered) : "-",
              format_usd(e.free()), format_usd(e.at_risk), std::to_string(e.parked),
              e.per_hour ? format_usd(*e.per_hour) : "-"},
             format_usd(e.self_reported)));
  }
  table.append_to(out);
  if (told) out += "\nself_reported: the part of what is spent that agents said of themselves\n";
  out += "\n# spent  + reserved  ? reserved and at risk  . free\n";
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
  std::string out = "\n";
  const bool told = std::ranges::any_of(
      groups, [](const MoneyGroup& g) { return g.self_reported != MicroUsd::zero(); });
  std::vector<std::string> header = {"group", "spent",    "reserved", "at risk",
                                     "runs",  "attempts", "parked"};
  if (told) header.emplace_back("self_reported");
  Table table(std::move(header), 1, Table::Rule::kNone);
  for (const MoneyGroup& g : groups) {
    std::vector<std::string> cells = {printable(g.name),       format_usd(g.spent),
                                      format_usd(g.reserved),  format_usd(g.at_risk),
                                      std::to_string(g.runs),  std::to_string(g.attempts),
                                      std::to_string(g.parked)};
    if (told) cells.push_back(format_usd(g.self_reported));
    table.add(std::move(cells));
  }
  table.append_to(out);
  return out;
}

std::string render_money_json(const MoneyView& view, std::string_view by,
                              const std::vector<MoneyGroup>& groups) {
  Ordered out = {{"schema_version", 1},       {"campaign", view.campaign},
                 {"at", to_rfc3339(view.at)}, {"running", view.running},
                 {"unit", view.unit},         {"overrun", money_json(view.overrun)}};
  Ordered envelopes = Ordered::array();
  for (const EnvelopeMoney& e : view.envelopes) envelopes.push_back(envelope_json(e));
  out["envelopes"] = std::move(envelopes);
  Ordered dominant = Ordered::array();
  for (const MoneyInput::Told& d : view.dominant)
    dominant.push_back({{"at", to_rfc3339(d.at)}, {"text", d.text}});
  out["dominant"] = std::move(dominant);
  if (!by.empty()) {
    Ordered list = Ordered::array();
    for (const MoneyGroup& g : groups)
      list.push_back({{"name", g.name},
                      {"spent", money_json(g.spent)},
                      {"self_reported", money_json(g.self_reported)},
                      {"reserved", money_json(g.reserved)},
                      {"at_risk", money_json(g.at_risk)},
                      {"runs", g.runs},
                      {"attempts", g.attempts},
                      {"parked", g.parked}});
    out["by"] = by;
    out["groups"] = std::move(list);
  }
  return dumped(out) + "\n";
}

}  // namespace proctor
