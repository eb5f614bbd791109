#pragma once
// `proctor verify`, the part about money: every balance again from the journal's rows, each row
// against the contract of its state, each settlement against the price table and the run's report.
// Pure: reports problems through `problem(where, what)`, in the order of the journal.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "common/trace/run_report.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"

namespace proctor::cli {

class MoneyAudit {
 public:
  using Problem = std::function<void(const std::string& where, const std::string& what)>;
  // `view` is the campaign's, raises applied; `plan` names its runs; all four outlive the audit.
  MoneyAudit(const PlanView& view, const Plan& plan, const CostModel& prices,
             const RestoredState& state, Problem problem);

  // Attempts by run, then number.  `report`: of its run directory, if it has one.
  void add(const AttemptRecord& attempt, const std::optional<RunReport>& report);
  void finish();
  // After finish(), which counts reviews; where the registration has them: each alert is one that
  // had to be told, once, and none is missing; likewise runs that dominated.
  void check_told(const BudgetWatch& watch);

  const std::vector<MicroUsd>& spent() const { return spent_; }
  const std::vector<MicroUsd>& reserved() const { return reserved_; }

 private:
  // "journal: attempt 11.1 (mod-1/careful/r1)", as the journal counts and as people do.
  std::string place_of(const std::string& what, RunId run) const;
  void check_order(const AttemptRecord& a, const std::string& name);
  void check_state(const AttemptRecord& a, const std::string& name);
  void check_settlement(const AttemptRecord& a, const std::string& name);
  void check_outcome(const AttemptRecord& a, const std::string& name);
  void check_report(const AttemptRecord& a, const RunReport& report, const std::string& name);
  void add_reviews();
  void check_parked(const ParkedRun& parked);
  void compare_scopes();
  void read_set_aside();
  void check_alert(const BudgetWatch& watch, const BudgetAlert& alert);

  const PlanView& view_;
  const Plan& plan_;
  const CostModel& prices_;
  const RestoredState& state_;
  Problem problem_;
  std::vector<MicroUsd> spent_, reserved_;
  std::map<RunId, EndedRun> ended_;
  std::map<RunId, AttemptId> outcome_of_;  // attempts that ended their run
  std::optional<AttemptId> last_;
  bool last_open_ = false;
  std::set<AttemptId> set_aside_;
  std::map<RunId, std::vector<WallTime>> cancelled_at_;  // by operators
  std::vector<MicroUsd> least_ask_;  // by scope, of the runs that need room in it
};

}  // namespace proctor::cli
