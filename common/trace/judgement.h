#pragma once
// Gates, violations, score and tags of an attempt, computed from the events of its trace alone
// (R135, R149, R154): by its worker when it packages, by the coordinator when it arrives, by
// `proctor verify` later; the three never differ.  Pure; one object, one thread.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/contract/rubric.h"
#include "common/score/gates.h"
#include "common/score/graded_score.h"
#include "common/score/taxonomy.h"
#include "common/trace/event.h"
#include "common/trace/payloads.h"
#include "common/trace/run_report.h"

namespace proctor {
struct JudgedRun {
  GateVector gates{};
  // Violations that the events show.  A place of the network is without its count.
  std::vector<std::string> violations{};
  bool repeated = true;        // as often as registered
  bool all_violations = true;  // false: lists of the trace were cut, there may be others
  std::optional<GradedScore> score{};
  std::vector<Tag> tags{};
  std::vector<Intervention> interventions{};
};

class JudgementFold {
 public:
  using Monitors = std::map<std::string, std::string>;
  // `monitors`: as the manifest has them.  Both outlive this.
  JudgementFold(const JudgeRules& rules, const Monitors& monitors)
      : rules_(rules), monitors_(monitors) {}
  JudgementFold(JudgeRules&&, const Monitors&) = delete;
  JudgementFold(const JudgeRules&, Monitors&&) = delete;
  void on(const TraceEvent& event);
  // Once, after the last event.  `outcome`: of the run, as its checks decide it.
  JudgedRun result(RunOutcome outcome);

 private:
  void patch_tried(const events::PatchTried& tried, std::uint64_t seq);
  void mutation(const events::Mutation& m, std::uint64_t seq);
  void check(const events::CheckTold& told, std::uint64_t seq);
  void repeated(const TraceEvent& event);
  bool is_outside(const std::string& path) const;
  void alert(const TraceEvent& event);
  void violation(std::string text, std::string_view sign, std::uint64_t seq);
  void sign(std::string_view word, std::uint64_t seq, std::string_view format = {});
  void intervention(const TraceEvent& event);
  std::vector<GateInput> inputs();
  ScoreFacts score_facts() const;

  const JudgeRules& rules_;
  const Monitors& monitors_;
  Signs signs_;
  JudgedRun out_;  // as far as it is known before the end
  std::vector<GateInput> checks_, broken_;
  std::vector<FailedCheck> failed_;
  std::set<std::string> outside_;    // paths changed against policy.writable
  std::set<std::string> setups_;     // changed by setup alone
  bool all_paths_ = true;            // of the patch are known
  std::set<std::string> known_;      // violations
  std::set<const CheckGate*> told_;  // checks with an outcome
  std::optional<GateInput> patch_;   // the worst that is known of it
  std::string changed_;              // "1 file, +3 -1"
  std::string stage_;
  std::pair<std::uint64_t, std::string> alert_;  // the last: its event and code
  Termination ending_ = Termination::kCompleted;
  std::uint64_t ended_ = 0;             // the event of that; 0: none yet
  std::uint64_t end_ = 0;               // the last event
  std::set<std::string> maint_failed_;  // in any repetition
  std::uint64_t lines_ = 0, files_ = 0, maint_of_ = 0;
  std::uint64_t repeated_ = 0, repeat_ = 0;  // how often, and the last event of it
  std::uint64_t untold_ = 0;                 // attempts and programs that no monitor looked at
  bool manifest_ = false, extracted_ = false;
};

// The code of an alert that counts them: more were made than are told one by one.
inline constexpr std::string_view kUntold = "untold";

// The word of a manifest's monitors for one that does not look here.
inline constexpr std::string_view kUnobserved = "unobserved";

// An alert that is no breaker's says this of the run that caused it.
struct AlertMeaning {
  std::string violation;  // as a report has it, but for how often
  std::string sign;       // the taxonomy's: "alert:escape"
  std::string format;     // R152
  bool critical = false;
};
// Empty: it is on record alone.
std::optional<AlertMeaning> meaning_of(std::string_view code, const Json& signals,
                                       std::string_view stage);

// Judges a run by its manifest and events as they are on disk: whoever verifies it later has no
// others.  Without a whole manifest the report stays as it is.  Errors: of each_event().
Status judge_report(RunReport& report, const fs::path& run_dir);

// Puts it into the report: gates, score, tags, interventions.
void set_judgement(RunReport& report, const JudgedRun& judged);
// The part of it that a journal keeps.
void add_judged(AttemptFacts& facts, const RunReport& report);
}  // namespace proctor
