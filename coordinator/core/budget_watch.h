#pragma once
// What is told while money is spent, and when: alerts at registered shares of every envelope's cap,
// and the dominance rule (R190): a run that has used much of its money without a milestone.  Pure:
// integers only, no clock.  Owned by the scheduler, which writes each of these facts into the same
// journal transaction as what led to it: so each is written exactly once, whatever is killed when.
// Not thread-safe.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "common/ledger/ledger.h"
#include "coordinator/core/records.h"

namespace proctor {
// spent >= percent % of cap.  What is reserved does not count: it may come back.  An envelope in
// which nothing was spent has reached nothing, whatever its cap.  Requires: amounts up to
// kLedgerMax, percent up to 100.
bool has_reached(MicroUsd spent, MicroUsd cap, std::uint32_t percent);

class BudgetAlerts {
 public:
  // `levels` in percent, ascending.
  explicit BudgetAlerts(std::vector<std::uint32_t> levels) : levels_(std::move(levels)) {}

  // It was told, in the order in which that was: by an earlier life, or by whom reached() answered.
  void take(BudgetAlert alert);
  // Whenever the cap was raised: a level that this put out of reach is told again when it is
  // reached.
  void rearm(ScopeId scope, const ScopeBalance& balance);
  // The levels that are reached and were not told yet.
  std::vector<BudgetAlert> reached(ScopeId scope, const std::string& name,
                                   const ScopeBalance& balance, WallTime now) const;
  const std::vector<BudgetAlert>& told() const { return told_; }
  // Which levels are not told again as things stand, ascending.
  std::vector<std::pair<ScopeId, std::uint32_t>> standing() const;

 private:
  std::vector<std::uint32_t> levels_;
  std::map<std::pair<ScopeId, std::uint32_t>, bool> is_told_;
  std::vector<BudgetAlert> told_;
};

// Has the run used so much of its money that it had to show a milestone by now?
bool dominates(const BudgetWatch::Dominance& rule, MicroUsd cost, MicroUsd ask,
               std::uint64_t milestones);

// What a raised envelope changes.  kCorrupt: it does not follow from the cap before it; nothing has
// changed then.
Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& raise);

// Sentences for log, status and report; `unit`: money_word().
std::string describe(const BudgetAlert& alert, const std::string& unit);
std::string describe(const RunDominates& fact,
                     const std::string& unit);  // after the name of its run and ": "
}  // namespace proctor
