#include "coordinator/core/budget_watch.h"

#include <algorithm>

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

Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& r) {
  const std::string what = "journal: the raise of " + r.name + " to " + format_usd_exact(r.to);
  if (scopes.size() <= r.scope.raw() || scopes[r.scope.raw()].name != r.name)
    return Error{Errc::kCorrupt, what + " is of an envelope that is not there"};
  ScopeSpec& scope = scopes[r.scope.raw()];
  if (scope.cap != r.from || r.to <= r.from)
    return Error{Errc::kCorrupt, what + " begins at " + format_usd_exact(r.from) +
                                     ", but the cap was " + format_usd_exact(scope.cap)};
  scope.cap = r.to;
  return ok_status();
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
}  // namespace proctor
