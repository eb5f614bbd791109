#include "coordinator/core/budget_watch.h"

#include <algorithm>
#include <array>

#include "common/base/json.h"

namespace proctor {
constexpr std::int64_t kWhole = 100;  // percent

// kLedgerMax is below 2^53 and 100 below 2^7: both products fit 63 bits.
static_assert(kLedgerMax.micros() <= INT64_MAX / kWhole);

bool has_reached(MicroUsd spent, MicroUsd cap, std::uint32_t percent) {
  return MicroUsd::zero() < spent &&
         static_cast<std::int64_t>(percent) * cap.micros() <= kWhole * spent.micros();
}

void BudgetAlerts::take(BudgetAlert alert) {
  is_told_[{alert.scope, alert.percent}] = true;
  told_.push_back(std::move(alert));
}

void BudgetAlerts::rearm(ScopeId scope, const ScopeBalance& balance) {
  for (const std::uint32_t percent : levels_)
    if (!has_reached(balance.spent, balance.cap, percent)) is_told_.erase({scope, percent});
}

std::vector<BudgetAlert> BudgetAlerts::reached(ScopeId scope, const std::string& name,
                                               const ScopeBalance& balance, WallTime now) const {
  std::vector<BudgetAlert> out;
  for (const std::uint32_t percent : levels_) {
    if (!has_reached(balance.spent, balance.cap, percent)) break;  // ascending
    if (is_told_.contains({scope, percent})) continue;
    out.push_back({scope, name, percent, balance.spent, balance.cap, now});
  }
  return out;
}

std::vector<std::pair<ScopeId, std::uint32_t>> BudgetAlerts::standing() const {
  std::vector<std::pair<ScopeId, std::uint32_t>> out;
  for (const auto& [level, told] : is_told_) out.push_back(level);
  return out;
}

bool dominates(const BudgetWatch::Dominance& rule, MicroUsd cost, MicroUsd ask,
               std::uint64_t milestones) {
  return rule.action != BudgetWatch::Dominance::Action::kOff && milestones < rule.milestones &&
         has_reached(std::min(cost, ask), ask, rule.percent);
}

std::string describe(const BudgetAlert& a, const std::string& unit) {
  return "envelope " + a.name + ": " + format_usd(a.spent) + " of " + format_usd(a.cap) + " " +
         unit + " are spent, " + std::to_string(a.percent) + " % or more";
}

std::string describe(const RunDominates& d, const std::string& unit) {
  return "attempt " + std::to_string(d.attempt.no.raw()) + " has used " + format_usd(d.cost) +
         " of its " + format_usd(d.ask) + " " + unit + " with " + std::to_string(d.milestones) +
         (d.milestones == 1 ? " milestone" : " milestones") +
         (d.stop ? "; its agent is stopped" : "");
}

Note note_of(const BudgetAlert& a) {
  const Json detail = {{"cap", a.cap.micros()},
                       {"name", a.name},
                       {"percent", a.percent},
                       {"scope", a.scope.raw()},
                       {"spent", a.spent.micros()}};
  return {a.at, kNoteBudgetAlert, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

Note note_of(const RunDominates& d) {
  const Json detail = {{"ask", d.ask.micros()},
                       {"cost", d.cost.micros()},
                       {"milestones", d.milestones},
                       {"stop", d.stop}};
  return {d.at, kNoteDominance, d.attempt.run, d.attempt.no, detail.dump()};
}

namespace {
// The object that is written, with whole amounts in `numbers`.
template <std::size_t N>
Result<Json> read_detail(const Note& note, const std::array<const char*, N>& numbers) {
  const auto wrong = [&](const std::string& what) {
    return Error{Errc::kCorrupt, note.kind + ": " + what};
  };
  Result<Json> parsed = parse_json(note.detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object() || parsed->size() != N + 1) return wrong("not the object it should be");
  for (const char* key : numbers)
    if (!parsed->contains(key) || !(*parsed)[key].is_number_unsigned() ||
        static_cast<std::uint64_t>(kLedgerMax.micros()) <
            (*parsed)[key].template get<std::uint64_t>())
      return wrong(std::string(key) + " is not an amount");
  return parsed;
}

MicroUsd amount(const Json& detail, const char* key) {
  return MicroUsd::from_micros(detail[key].get<std::int64_t>());
}
}  // namespace

Result<BudgetAlert> alert_of(const Note& note) {
  PROCTOR_TRY(const Json j, read_detail<4>(note, {{"cap", "percent", "scope", "spent"}}));
  if (!j.contains("name") || !j["name"].is_string())
    return Error{Errc::kCorrupt, note.kind + ": name is not a text"};
  const auto percent = j["percent"].get<std::uint64_t>(), scope = j["scope"].get<std::uint64_t>();
  if (percent == 0 || static_cast<std::uint64_t>(kWhole) < percent || UINT32_MAX < scope)
    return Error{Errc::kCorrupt, note.kind + ": not an envelope or not a percentage"};
  return BudgetAlert{ScopeId(static_cast<std::uint32_t>(scope)),
                     j["name"].get<std::string>(),
                     static_cast<std::uint32_t>(percent),
                     amount(j, "spent"),
                     amount(j, "cap"),
                     note.at};
}

Result<RunDominates> dominance_of(const Note& note) {
  PROCTOR_TRY(const Json j, read_detail<3>(note, {{"ask", "cost", "milestones"}}));
  if (!j.contains("stop") || !j["stop"].is_boolean())
    return Error{Errc::kCorrupt, note.kind + ": stop is neither true nor false"};
  if (!note.run || !note.attempt) return Error{Errc::kCorrupt, note.kind + ": of no attempt"};
  return RunDominates{{*note.run, *note.attempt},           amount(j, "cost"),     amount(j, "ask"),
                      j["milestones"].get<std::uint64_t>(), j["stop"].get<bool>(), note.at};
}
}  // namespace proctor
