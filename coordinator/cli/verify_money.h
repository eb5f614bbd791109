#pragma once
// `proctor verify`, the parts about money: a shared envelope, the journal's balances, and Redis.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/contract/campaign.h"
#include "common/ledger/redis_ledger.h"
#include "common/plan/plan.h"
#include "common/trace/run_report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
// A member's own part of an envelope that campaigns share: what Redis holds as its part, from which
// all others admit, against its own journal.  Pure.

// What of the envelope a campaign takes: spent by what is settled, reserved by what is under way.
struct OwnPart {
  MicroUsd spent, reserved;
  MicroUsd held() const { return spent + reserved; }
};
OwnPart own_part(const RestoredState& state);

// The campaign `self`, the envelope "shared:NAME", and `fields`, the hash that Redis has of it.
// `exact`: the part as of the instant at which Redis was read; none where the life that Redis knows
// is not the journal's last, so that what is "here" may have moved since.  `after`: the journal,
// read after Redis.  The value, for one line: what was compared, or why it was not.
std::string compare_part(const std::string& self, const std::string& envelope,
                         const RedisLedger::Fields& fields, const std::optional<OwnPart>& exact,
                         const RestoredState& after, const ProblemHandler& problem);

// Every balance again from the journal's rows, each row against the contract of its state, each
// settlement against the price table and the run's report.  Pure: reports problems through
// `problem(where, what)`, in the order of the journal.
class MoneyAudit {
 public:
  // `view` is the campaign's, raises applied; `plan` names its runs; all four outlive the audit.
  MoneyAudit(const PlanView& view, const Plan& plan, const CostModel& prices,
             const RestoredState& state, ProblemHandler problem);

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
  ProblemHandler problem_;
  std::vector<MicroUsd> spent_, reserved_;
  std::map<RunId, EndedRun> ended_;
  std::map<RunId, AttemptId> outcome_of_;  // attempts that ended their run
  std::optional<AttemptId> last_;
  bool last_open_ = false;
  std::set<AttemptId> set_aside_;
  std::map<RunId, std::vector<WallTime>> cancelled_at_;  // by operators
  std::vector<MicroUsd> least_ask_;  // by scope, of the runs that need room in it
};

// The campaign in Redis against the journal.
//
// Both move while a campaign runs, so the journal is read before and after Redis, which is read at
// one instant.  What Redis holds reserved must be its own pending reservations, exactly; what it
// holds spent must be the settlements of the journal and those of its rows that the journal did not
// have yet; each reservation must be one that the journal had before or has after.  The campaign's
// part of an envelope that it shares must be what Redis holds of that envelope for it.

// Pure.  False: between the two readings a run began and ended unseen, so that nobody can say
// whether Redis had it: read again.  `view` with its raises.  `part`: of the envelope that it
// shares, as of the instant at which Redis was read.
bool compare_redis(const PlanView& view, const RestoredState& before,
                   const RedisLedger::Stored& redis, const RestoredState& after,
                   const ProblemHandler& problem, std::optional<OwnPart>& part);

// Finds the server and compares, or says why it did not; the value is that one line.  A server
// that is not there is no problem: the journal is the record.
std::string verify_redis(const FrozenCampaign& frozen, JournalReader& journal,
                         const ProblemHandler& problem);
}  // namespace proctor::cli
