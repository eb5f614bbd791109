#pragma once
// From what the journal holds about runs to the tables of `proctor report` (R060-R064,
// R157, R191, R192, R199, R200).  build_report() counts; the renderers only show.
// Owns copies of everything it was given, so a report outlives the journal it came from.
// Pure: no I/O, no clock; the same runs give the same bytes.  Rates are doubles, money never is.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/words.h"
#include "common/contract/analysis_plan.h"
#include "common/contract/cost_model.h"
#include "common/contract/rubric.h"
#include "common/score/gates.h"
#include "common/score/outcome.h"
#include "common/stats/clustered.h"
#include "common/stats/interval.h"
#include "coordinator/aggregate/model_use.h"
#include "coordinator/aggregate/projection.h"

namespace proctor {
// The part of a cost and its quantities that an agent said of itself and nobody measured.
struct SelfReported {
  MicroUsd usd;
  std::uint64_t calls = 0;  // of every kind
  std::uint64_t tokens = 0;
  bool any() const { return usd != MicroUsd::zero() || 0 < calls || 0 < tokens; }
  friend SelfReported operator+(const SelfReported& a, const SelfReported& b) {
    return {a.usd + b.usd, a.calls + b.calls, a.tokens + b.tokens};
  }
};

// A result that was its run's outcome, invalid, until an operator put the run in line again.  It is
// in no rate; its cost is in the run's.
struct SetAside {
  std::uint32_t attempt = 0;
  Termination termination = Termination::kInfrastructure;
  std::string why;         // for people
  Digest report;           // of report.json; zeros: there is none
  std::string by, reason;  // who set it aside; `reason` may be empty
};

// One run of the plan as it stands now.
struct RunRecord {
  enum class State {
    kPlanned,    // not started
    kRunning,    // an attempt is out
    kParked,     // an envelope was short, or its task or method is broken
    kEnded,      // has an outcome
    kCancelled,  // an operator ended it without an outcome
    kRemoved,    // its task was taken out after the freeze (R173)
  };
  RunId run;
  std::string name;  // task/method/rN
  std::string task, method;
  // What its method is known to come to where the task is sound: noop fails, reference passes.
  enum class Baseline : std::uint8_t { kNone, kNoop, kReference } baseline = Baseline::kNone;
  // Controls measure the tasks and no agent, so they are in no rank, badge or axis.
  bool is_control() const { return baseline != Baseline::kNone; }
  std::vector<std::string> strata;  // one value per key of the input
  std::uint32_t repository = 0;     // of its task: equal numbers are one repository; 0: not known
  State state = State::kPlanned;
  RunOutcome outcome = RunOutcome::kInvalid;          // of kEnded
  Termination termination = Termination::kCompleted;  // of kEnded
  Cost cost;          // of all attempts, lost ones too, and of its reviews (human)
  MicroUsd reviewed;  // the part of it that reviews are
  std::uint32_t reviews = 0;
  std::uint32_t attempts = 0;
  std::uint64_t setup_ms = 0, agent_ms = 0, acceptance_ms = 0;  // of the attempt that counts
  std::uint64_t wall_ms = 0;      // from its start to its report; 0: unknown
  Digest report;                  // of report.json; zeros: there is none
  std::string parked_scope;       // of kParked: the envelope that was short
  MicroUsd short_by;              // of kParked: by how much
  std::string parked_why;         // of kParked where no envelope is short: what is broken
  std::optional<int> agent_exit;  // of the attempt that counts: what its agent ended with
  std::string patch;              // likewise: how its patch fitted, where not as it is
  std::string rationale;          // of its last attempt with a result, for people
  std::string cap;                // likewise: that ended it
  // Known for controls alone: how many runs of acceptance passed before one that did not.
  std::uint64_t passes = 0;
  bool no_model = false, not_judged = false;  // likewise, as AttemptFacts has them
  // The last line that its agent wrote to its standard error; of a run of early_ends() alone.
  std::string last_words;
  // Of its settled attempts: what was reserved for them, what was metered above that (and charged
  // to no envelope), and the cost of those that infrastructure wasted.
  MicroUsd asked, overrun, wasted;
  std::uint32_t wasted_attempts = 0;
  bool reopens = false;  // it ended invalid, and a requeue --invalid would begin it again
  bool ended_before_removal = false;  // of kRemoved: it has an outcome, which is in no rate
  // Model calls that were counted, and what rests on the agent's word alone; of all attempts.
  std::uint64_t metered_calls = 0;
  ModelUse model_use;
  SelfReported self_reported;
  // "model_calls (10) and tokens (1000)": its caps that only a metered call counts against, where
  // nobody but its method's program can say that there was one; empty: none.
  std::string unseen_caps;
  std::vector<SetAside> set_aside;  // in the order of their attempts
  // Of the attempt that counts: who had it, when it began (0: unknown), and how often it broke a
  // constraint of its contract (R008), with the first of these for people.
  std::string worker;
  std::int64_t started_ms = 0;
  std::int64_t first_asked_ms = 0;  // when its first attempt was; 0: there is none
  std::uint64_t violations = 0;
  std::string violated;
  std::string stage{};  // of the plan
  // The outcome that a recorded patch, which is judged again, had in the run it comes from.  All
  // tables that name it read it here.
  std::optional<RunOutcome> old_outcome{};
  bool unjudged = false;  // its campaign judges recorded patches again, and not this run's
  // The class of the attempt that counts (trace/manifest.h), 16 digits; empty: its worker, an older
  // one, did not say.
  std::string configuration{};
  bool networked = false;  // the same: a phase had the network, so it cannot be replayed (R075)
  // The same: its gates in their order, patch, build, functional, safety.  Nothing: no result of
  // it has them, for its worker was older.
  std::optional<std::array<GateOutcome, 4>> gates{};
  std::optional<double> score{};  // graded, in [0, 1]; nothing: it has none
  std::string tags{};             // ids of its failure modes, "a,b"
  std::vector<std::string_view> tag_list() const;
  // All attempts that were not lost have these.
  std::uint64_t tool_calls = 0, failed_cycles = 0;
  // The first gate that does not pass; empty: all do.  Of an older worker's run the one that it
  // fails beside its checks, patch or safety.
  std::string_view failed_gate() const;
  // Why, for people: "2 violations, first protected: tests/a.py"; empty: it fails none.
  std::string unmet() const;
  // Acceptance passed, and every gate (R008, R135).  Requires: it has ended.
  bool satisfied() const { return outcome == RunOutcome::kSuccess && failed_gate().empty(); }
  // It may still end as it was planned: not started, running, or parked until a budget is raised.
  // Rates without the runs that are not judged again are of a part that somebody chose.
  bool is_awaited() const {
    return state == State::kPlanned || state == State::kRunning || awaits_money() || unjudged;
  }
  bool awaits_money() const { return state == State::kParked && parked_why.empty(); }
};

// The parts of configuration classes, by class, of those that could be read (trace/manifest.h).
using Configurations = std::map<std::string, std::map<std::string, std::string>>;

// The rule of all that compares (docs/analysis.md): kConflict while a run of the campaign is
// awaited, for whoever looks and then raises a budget a little, until it pleases, finds a
// difference where there is none.  `campaign`: as its reader calls it.
Status may_be_compared(std::string_view campaign, std::span<const RunRecord> runs);

// Finds runs that would count twice, by their attempts: a folder that was copied and resumed has
// another journal, and all attempts of before the copy.
class SeenRuns {
 public:
  struct Again {
    std::uint64_t runs = 0;  // with an attempt that campaigns added before have
    std::size_t of = 0;      // the place, from 0, of the one that has that of the first
  };
  // `campaign`: its id.
  Again add(std::string_view campaign, std::span<const RunRecord> runs);

 private:
  std::map<std::string, std::size_t> seen_;  // an attempt, and the place of its campaign
  std::size_t campaigns_ = 0;
};

// What a report is given, and has itself.
struct ReportFacts {
  std::string campaign;      // its id
  std::string unit = "USD";  // what amounts are counted in (cost_model.h)
  std::vector<std::string> strata_keys;
  std::vector<RunRecord> runs;  // Requires: each has a value per key; a report's: by run number
  double alpha = 0.05;
  std::vector<std::string> deviations{};   // from the registration, one sentence each
  std::vector<std::string> approvals{};    // each of a stage: by whom, by which digest
  std::optional<Comparison> projection{};  // nothing: no inputs of one are there
  // About money, in order: envelopes that filled up, runs that dominated.
  std::vector<std::string> alerts{};
  // Of the journal that all of this was read from, in hexadecimal; `proctor verify` prints the same
  // while no row changes.  Empty: nobody has run anything yet, or its rows are not sealed.
  std::string journal_head{};
  // Why it is not all of the campaign, a sentence; empty: it is.
  std::string part{};
  // What a reader has to know before any number, a sentence each: recorded models, flaky tasks.
  std::vector<std::string> warnings{};
  Configurations configurations{};
  std::vector<TagRule> failure_modes{};  // the campaign's own
  // It judges recorded patches again: "regrade of ID"; empty: its agents are its own.
  std::string again{};
};

struct ReportInput : ReportFacts {
  AnalysisPlan plan{};
  bool plan_registered = false;
  // What the plan compares, each pair a - b (contrasts_of).
  std::vector<std::pair<std::string, std::string>> contrasts{};
  // How many runs beside its part are open: while there are any, no comparison is shown of it.
  std::uint64_t open_beside = 0, for_money_beside = 0;
};

// What is left of it are the runs of that stage.  kInvalid: it has none of that name.
Status keep_stage(ReportInput& input, const std::string& stage);

// x of n, with its Wilson interval; no rate of nothing.
struct Share {
  std::uint64_t x = 0;
  std::uint64_t n = 0;
  std::optional<double> rate;
  std::optional<Interval> interval;
};

struct Times {
  std::optional<double> median_ms;
  std::optional<std::uint64_t> longest_ms;
};

struct ReportRow {
  std::string method;
  bool is_control = false;  // of the method's runs
  // The stratum, or the key "stage" (which no stratum has) and a stage; key empty: all runs.
  std::string key, value;

  // Every planned run is in exactly one of: the four outcomes, parked, open, cancelled, removed.
  std::uint64_t planned = 0;
  std::uint64_t success = 0, failure = 0, acceptance_error = 0, invalid = 0;
  std::uint64_t parked = 0, open = 0, cancelled = 0, removed = 0;
  std::uint64_t running = 0;  // of `open`
  std::uint64_t scorable() const { return success + failure + acceptance_error; }
  std::uint64_t ended() const { return scorable() + invalid; }
  std::uint64_t satisfied = 0;  // of `success`: those that passed every gate (R008)

  // Of the invalid ones: their method's program could not start, or had no model; and of these the
  // second.  The provider of a model had no room.
  std::uint64_t agent_unavailable = 0, model_unavailable = 0, model_overloaded = 0;
  std::uint64_t without_agent() const { return agent_unavailable + model_overloaded; }

  // success / scorable (R062).  Where the plan counts runs it is the endpoint, and has the plan's
  // interval.
  Share success_rate;
  // success / (scorable + without_agent()): the same, had none of those passed.
  Share success_rate_started;
  Share acceptance_error_rate;  // acceptance errors / scorable (R063)
  Share invalid_rate;           // invalid / ended (R063)
  // Where success_rate may lie, whatever the errors and the invalid runs would have been (Manski;
  // STATISTICS E9): it is over runs, so it is shown beside no rate over tasks.
  std::optional<Interval> bounds;
  std::optional<ClusteredRate> by_task;  // of the tasks with scorable runs
  // Of that mean, as the plan of analysis has it; or why there is none.
  std::optional<Interval> interval;
  std::optional<Interval> bounds_by_task;  // where that mean may lie, likewise
  Why why = Why::kOk;
  Estimate weighted;  // in the plan's weights, of a method over all tasks

  Cost cost;                                          // of all runs of the row, however they ended
  std::optional<MicroUsd> cost_per_success;           // rounded up
  Times time, time_of_success, time_of_failure;       // of ended runs with a known time
  std::map<Termination, std::uint64_t> terminations;  // of ended runs
  // Of those whose agent ended by itself with an exit code, or could not start.
  std::map<Termination, std::map<int, std::uint64_t>> agent_exits;

  ModelUse model_use;
  SelfReported self_reported;  // the part of `cost`, and its quantities
  // Runs that were judged under caps on calls or tokens, and those of them without a metered call.
  std::uint64_t capped_calls = 0, unmetered_runs = 0;
  // Nothing was ever counted against those caps.
  bool unmetered() const { return 0 < capped_calls && unmetered_runs == capped_calls; }

  std::vector<std::uint32_t> runs;  // positions in CampaignReport::runs
};

// Where the money went: one group of runs.  The distribution is over ended runs and of whole runs,
// all their attempts together; quantiles are amounts that occurred (nearest rank), never means.
struct CostRow {
  std::string by;    // "all", "method", "stratum", "stage", "outcome"
  std::string name;  // of the group: a method, KEY=VALUE, an outcome or "not ended"
  std::uint64_t runs = 0, ended = 0, successes = 0;
  Cost cost;
  MicroUsd asked, overrun, wasted;
  std::uint64_t wasted_attempts = 0;
  MicroUsd reviewed;  // of `cost`, what reviews are: beside what was reserved
  std::uint64_t reviews = 0;
  ModelUse model_use;
  SelfReported self_reported;  // the part of `cost`, and its quantities
  std::optional<MicroUsd> median, p90, most;
  std::optional<MicroUsd> per_success;  // rounded up
};

// Runs of a method whose recorded patch had the outcome `was` and now is where stand_of() says.
struct Transition {
  std::string method, was, is;
  std::uint64_t runs = 0;
};

struct Analysis;
struct ReportDetails;

struct CampaignReport : ReportFacts {
  std::vector<std::string> stages;  // in the plan's order
  // All tasks by method, controls last; then, key by key, value by value, by method; then, where
  // there are two stages or more, stage by stage.
  std::vector<ReportRow> rows;
  std::vector<CostRow> costs;  // all, by method, stratum and outcome
  ReportRow total;  // of the whole campaign: for the head line and the cost, not for a rate
  std::shared_ptr<const Analysis> analysis;  // never null (analysis.h)
  std::vector<bool> only_levels;             // by key: every task has the same level of it
  // By method, then the old outcome; empty: the campaign judges no recorded patch.
  std::vector<Transition> moves;
  std::shared_ptr<const ReportDetails> details;  // details.h; nothing: nobody asked for them
};

CampaignReport build_report(ReportInput input);
// Where the run is now: "success", "parked".
std::string_view stand_of(const RunRecord& run);
void add_outcome(ReportRow& row, RunOutcome outcome);
// The part of it that counts money; `report` has its runs.
std::vector<CostRow> cost_rows(const CampaignReport& report);
std::optional<MicroUsd> cost_per_success(MicroUsd total, std::uint64_t successes);

// How far it is, for `proctor status`: the rows of the report as counts alone, what runs now
// among them.  As a table and as the JSON list of the same.
std::string render_progress_text(const CampaignReport& report);
std::string render_progress_json(const CampaignReport& report);
enum class Words : std::uint8_t { kLeftOut, kShown };
// For a terminal: aligned tables, and below them what every word means, if that is asked for.
std::string render_text(const CampaignReport& report, Words words = Words::kShown);
// Its two halves: the tables, which take long to make of a large campaign, and what stands below.
std::string render_tables(const CampaignReport& report);
std::string with_words(std::string tables, Words words);
// For a screen, when a run of the campaign ends: how it stands, tasks by methods, the comparisons.
std::string render_end(const CampaignReport& report);
// One sentence for each method whose caps on calls or tokens counted nothing.
std::vector<std::string> unmetered_methods(const CampaignReport& report);
// Are this method's runs those of a control?
bool is_control(const CampaignReport& report, std::string_view method);
// "pilot and main": what rates and comparisons pool, for people; empty where there is one stage.
std::string pooled_stages(const CampaignReport& report);
// Is every task in this one level of the stratum, so that its rows repeat those of all?
bool is_only_level(const CampaignReport& report, std::string_view key);
inline constexpr std::size_t kJsonRuns = 5'000;
enum class JsonForm : std::uint8_t { kFirst = 1, kSecond = 2 };
// Every row with the sets of runs behind its counts, then every run: schema 2.  Above kJsonRuns it
// names runs.csv instead, by its digest; `runs_csv`: what that has, from who made it already.
// Schema 1, of before: every row has a list of its runs, and all runs are there.
std::string render_json(const CampaignReport& report, JsonForm form = JsonForm::kSecond,
                        std::string_view runs_csv = {});
// One record per row of the tables; money as exact decimals of dollars.
std::string render_csv(const CampaignReport& report);
// One record per run: filtering it gives the runs behind any row.
std::string render_runs_csv(const CampaignReport& report);
// One record per group of the cost tables.
std::string render_costs_csv(const CampaignReport& report);
// One record per row of the projection beside what was observed.  Requires: there is one.
std::string render_projection_comparison_csv(const Comparison& comparison);
void append_comparison(std::string& out, const Comparison& comparison);
// Success rates with their intervals as a picture that needs nothing beside it.
std::string render_svg(const CampaignReport& report);

// The words of a report and what each means; shared by all renderers.
struct Definition {
  std::string word;
  std::string_view meaning;
};
std::vector<Definition> report_definitions();
// What has to stand beside the tables: how errors count, what is not claimed (R064, R157).
std::vector<std::string_view> report_notes();

constexpr auto words(RunRecord::State) {
  return std::to_array<Word<RunRecord::State>>({{"planned", RunRecord::State::kPlanned},
                                                {"running", RunRecord::State::kRunning},
                                                {"parked", RunRecord::State::kParked},
                                                {"ended", RunRecord::State::kEnded},
                                                {"cancelled", RunRecord::State::kCancelled},
                                                {"removed", RunRecord::State::kRemoved}});
}
}  // namespace proctor
