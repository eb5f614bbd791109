#pragma once
// Gates, graded score and failure modes of a campaign's runs, by method and stratum (R131, R141,
// R148), and how the score depends on its weights.  The score is shown beside the gates and is
// never one number with them.  Pure.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/rubric.h"
#include "common/score/graded_score.h"
#include "common/stats/interval.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// "G1 patch", in the order of RunRecord::gates, with the meaning of each in one line.
struct GateWords {
  std::string_view name, meaning;
};
extern const std::array<GateWords, 4> kGateWords;

// Judged runs: those that ended, and whose gates are known.  Names as in ReportRow.
struct RubricRow {
  std::string method;
  bool is_control = false;
  std::string key, value;
  std::string stratum() const { return key.empty() ? "all" : key + "=" + value; }
};

struct GateRow : RubricRow {
  std::uint64_t judged = 0;
  std::array<std::array<std::uint64_t, 4>, 4> outcomes{};  // by gate and GateOutcome
  std::uint64_t critical = 0;  // successes with a failure mode that is critical
  std::string first;           // the first run that does not pass all; empty: each does
  Share all;                   // that passed all four; the interval is over tasks
  std::uint64_t scored = 0;
  Estimate score;  // mean over these runs, with its interval over tasks
};

struct TagRow : RubricRow {
  std::string tag;
  Severity severity = Severity::kNone;
  Attribution attribution = Attribution::kUnclear;
  std::string sentence;
  std::string first;  // run with it
  Share runs;         // a share of the judged ones; the interval is over tasks
};

// Mean difference of the score, a less b, over tasks with scored runs of both: exploratory.
struct ScoreContrast {
  std::string a, b;
  std::uint64_t tasks = 0;
  double difference = 0;
  std::optional<Interval> interval;  // tasks resampled; nothing: there is one task
  std::uint32_t draws = 0;
};

struct RubricTables {
  std::vector<GateRow> gates;  // as the report's rows; empty: no run is judged
  std::vector<TagRow> tags;    // by the same rows, in each the most severe first
  std::vector<ScoreContrast>
      contrasts;  // the plan's comparisons of agents; none while a run is open
};
RubricTables rubric_tables(const CampaignReport& report);
// All that a reader of these tables has to know, a sentence each: the monitors of these runs, how
// gates are judged, what became of a violation, score and severities.
std::vector<std::string> rubric_notes(const CampaignReport& report);
// A dagger and a blank before it: behind the name of a method that has successes with a critical
// violation, wherever people read its rate of success.  critical_warning() explains it.
inline constexpr std::string_view kCriticalMark = " \xE2\x80\xA0";
// The mark, or empty: it has no such success, or the report has no details.
std::string_view critical_mark(const CampaignReport& report, std::string_view method);
// A sentence beside rates where successes have a critical violation; empty: none has.
std::string critical_warning(const RubricTables& tables);
// Its answer: "refused (EPERM)".  `violation` as reports have it, empty: a success has none and
// does not pass a gate; `form` of a command.
std::string_view violation_answer(std::string_view violation, std::string_view form);
void append_rubric(std::string& out, const RubricTables& tables, const CampaignReport& report);
// "+0.012 [-0.051, +0.075]".
std::string difference_words(const ScoreContrast& contrast);

// Mean scores under other weights (R145): the registered ones, each dimension alone, and each
// weight 0.1 larger and smaller with the sum made 1 again.  Exploratory.
struct ScoredRun {
  std::string method;
  GradedScore score;
};
struct SensitivityRow {
  std::string name;  // "registered", "minimal alone", "trace + 0.1"
  RubricWeights weights;
  std::string method;
  std::uint64_t runs = 0;
  double mean = 0;
  bool turned = false;  // two methods have another order under these weights than as registered
};
std::vector<SensitivityRow> rubric_sensitivity(std::span<const ScoredRun> runs,
                                               const RubricWeights& registered);
}  // namespace proctor
