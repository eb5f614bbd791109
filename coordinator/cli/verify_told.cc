// `proctor verify`: what was told about money is what had to be told.
#include <algorithm>
#include <set>

#include "coordinator/cli/verify_money.h"
#include "coordinator/core/budget_watch.h"

namespace proctor::cli {
namespace {

std::string place(const std::string& envelope, std::uint32_t percent) {
  return "journal: alert of " + envelope + " at " + std::to_string(percent) + " %";
}

}  // namespace

void MoneyAudit::check_alert(const BudgetWatch& watch, const BudgetAlert& a) {
  const std::string where = place(a.name, a.percent);
  const std::size_t s = a.scope.raw();
  if (view_.scopes.size() <= s || view_.scopes[s].name != a.name)
    return problem_(where, "there is no such envelope");
  if (std::ranges::find(watch.alerts, a.percent) == watch.alerts.end())
    problem_(where, "that level is not registered");
  if (!has_reached(a.spent, a.cap, a.percent))
    problem_(where,
             format_usd_exact(a.spent) + " of " + format_usd_exact(a.cap) + " are less than that");
  if (spent_[s] < a.spent)
    problem_(where, format_usd_exact(a.spent) + " were spent then, " + format_usd_exact(spent_[s]) +
                        " now");
  bool known = a.cap == view_.scopes[s].cap;
  for (const BudgetRaised& r : state_.raises)
    known = known || (r.scope == a.scope && (r.from == a.cap || r.to == a.cap));
  if (!known) problem_(where, "it never had a cap of " + format_usd_exact(a.cap));
}

void MoneyAudit::check_told(const BudgetWatch& watch) {
  std::set<std::pair<ScopeId, std::uint32_t>> told;
  std::set<std::tuple<ScopeId, std::uint32_t, MicroUsd>> told_of_cap;
  for (const BudgetAlert& a : state_.alerts) {
    check_alert(watch, a);
    told.emplace(a.scope, a.percent);
    if (!told_of_cap.emplace(a.scope, a.percent, a.cap).second)
      problem_(place(a.name, a.percent), "it was told twice");
  }
  for (std::uint32_t s = 0; s < view_.scopes.size(); ++s) {
    if (view_.follows_global(ScopeId(s))) continue;
    for (const std::uint32_t percent : watch.alerts)
      if (has_reached(spent_[s], view_.scopes[s].cap, percent) &&
          !told.contains({ScopeId(s), percent}))
        problem_(place(view_.scopes[s].name, percent), format_usd_exact(spent_[s]) + " of " +
                                                           format_usd_exact(view_.scopes[s].cap) +
                                                           " are spent, and it was not told");
  }
  std::set<AttemptId> dominant;
  for (const RunDominates& d : state_.dominant) {
    const std::string where = place_of("attempt " + to_string(d.attempt), d.attempt.run);
    if (!dominant.insert(d.attempt).second) problem_(where, "that it dominates was told twice");
    if (view_.runs.size() <= d.attempt.run.raw()) {
      problem_(where, "the plan has no such run");
    } else if (d.ask != view_.task_of(d.attempt.run).ask ||
               !dominates(watch.dominance, d.cost, d.ask, d.milestones)) {
      problem_(where, "that it dominates was told, but its figures do not say so");
    }
  }
}

}  // namespace proctor::cli
