#include "coordinator/aggregate/campaign_comparison.h"

#include <doctest/doctest.h>

#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Tasks of two runs under one method, so many of them solved.
struct Side {
  Side(const std::string& method, int solved, std::int64_t cost_micros = 100'000, int tasks = 12) {
    Runs runs;
    for (int i = 0; i < tasks; ++i) {
      const std::string task = "task-" + std::to_string(10 + i);
      for (int r = 0; r < 2; ++r)
        runs.ended(task, "c", method, i < solved ? RunOutcome::kSuccess : RunOutcome::kFailure)
            .cost.execution = usd_micros(cost_micros);
      registration.contracts.emplace(task, sha256(task));
    }
    registration.methods.emplace(method, sha256(method));
    registration.caps["wall_ms"] = 1000;
    ReportInput input;
    input.campaign = method + std::to_string(solved);
    input.strata_keys = {"language"};
    input.runs = runs.records;
    report = build_report(input);
  }
  ComparedCampaign compared() const { return {registration, report}; }
  Registration registration;
  CampaignReport report;
};

CampaignComparison compared(const Side& older, const Side& newer,
                            const std::map<std::string, std::string>& names = {}) {
  return compare_campaigns(older.compared(), newer.compared(), names, 0.05);
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("a campaign is not worse than itself") {
    const Side same("agent", 6);
    const CampaignComparison c = compared(same, same);
    CHECK(c.common.size() == 12);
    CHECK(c.differences.empty());
    REQUIRE(c.methods.size() == 1);
    CHECK(*c.methods[0].contrast.difference.estimate.value == 0);
    CHECK(*c.methods[0].cost_ratio == 1);
    CHECK(c.methods[0].p_turned == 1);
    CHECK(decision_of(c) == Decision::kUndecided);
    CHECK(render_comparison_text(c).find("Note: both are one campaign, given twice or") == 0);
    Side again = same;
    again.report.journal_head = "that of a copy which was resumed";
    CHECK(compared(same, again).one_campaign.ends_with(": 24 runs are in both"));
    for (RunRecord& run : again.report.runs) run.report = sha256("run again: " + run.name);
    CHECK(compared(same, again).one_campaign.empty());
    const Side many("agent", 30, 100'000, 60);
    const CampaignComparison sure = compared(many, many);
    CHECK(decision_of(sure) == Decision::kNotWorse);
    CHECK(render_comparison_text(sure).find("Together: not worse") != std::string::npos);
  }

  TEST_CASE("campaigns whose tasks ran in other configuration classes do not just compare") {
    const auto of_class = [](const char* name, std::size_t from) {
      Side side("agent", 6);
      for (std::size_t i = from; i < side.report.runs.size(); ++i)
        side.report.runs[i].configuration = name;
      side.report.configurations[name] = {{"sandbox", name}};
      return side;
    };
    const Side docker = of_class("docker", 0), bubblewrap = of_class("bubblewrap", 0);
    CHECK(compared(docker, docker).differences.empty());
    const CampaignComparison other = compared(docker, bubblewrap);
    REQUIRE(other.differences.size() == 1);
    CHECK(other.differences[0] ==
          "runs of 12 of 12 tasks in common are of other configuration "
          "classes: sandbox (bubblewrap, docker)");
    // Two tasks of the second say none.
    CHECK(compared(docker, of_class("bubblewrap", 4))
              .differences[0]
              .starts_with("runs of 10 of 10 tasks in common"));
    const CampaignComparison unknown = compared(Side("agent", 6), docker);
    REQUIRE(unknown.differences.size() == 1);
    CHECK(unknown.differences[0].starts_with("no run of the older says its configuration class"));
  }

  TEST_CASE("noop and reference decide nothing, and one that changed is told") {
    // An agent that spreads enough to be decided by the t test; controls are always alike.
    const auto campaign = [](int reference_solves) {
      Side side("solver", 30, 100'000, 60);  // a name after theirs
      Runs runs;
      runs.records = side.report.runs;
      for (int i = 0; i < 6; ++i) {
        const std::string task = "task-" + std::to_string(10 + i);
        runs.ended(task, "c", "noop", RunOutcome::kFailure).baseline = RunRecord::Baseline::kNoop;
        runs.ended(task, "c", "reference",
                   i < reference_solves ? RunOutcome::kSuccess : RunOutcome::kFailure)
            .baseline = RunRecord::Baseline::kReference;
      }
      for (const char* method : {"noop", "reference"})
        side.registration.methods.emplace(method, sha256(method));
      ReportInput input;
      input.strata_keys = {"language"};
      input.runs = runs.records;
      side.report = build_report(input);
      return side;
    };
    const Side older = campaign(6), newer = campaign(5);
    const CampaignComparison c = compared(older, older);
    REQUIRE(c.methods.size() == 3);
    CHECK_FALSE(c.methods[0].is_control);
    CHECK(c.methods[1].is_control);
    CHECK(c.methods[2].is_control);
    CHECK(decision_of(c.methods[1], c.margin, c.alpha) == Decision::kUndecided);
    CHECK(decision_of(c) == Decision::kNotWorse);
    CHECK(c.differences.empty());
    const std::string text = render_comparison_text(c);
    CHECK(text.find("Together: not worse (noop and reference measure the tasks") !=
          std::string::npos);
    CHECK(render_comparison_json(c).find("\"control\":true") != std::string::npos);

    const CampaignComparison turned = compared(older, newer);
    CHECK(decision_of(turned) == Decision::kNotWorse);
    REQUIRE(turned.differences.size() == 1);
    CHECK(turned.differences[0].find("reference, which measures the tasks and no agent, came to "
                                     "something else at 1 task") == 0);

    // Asked for alone, it is what is decided.
    CampaignComparison alone = c;
    std::erase_if(alone.methods, [](const MethodComparison& m) { return m.new_name != "noop"; });
    CHECK(decision_of(alone) == Decision::kUndecided);
  }

  TEST_CASE("where all tasks differ alike it takes enough of them to decide") {
    const auto decided = [](int before, int after, int tasks) {
      return decision_of(compared(Side("agent", before, 1, tasks), Side("agent", after, 1, tasks)));
    };
    CHECK(decided(0, 0, 58) == Decision::kUndecided);
    CHECK(decided(0, 0, 59) == Decision::kNotWorse);
    CHECK(decided(2, 0, 2) == Decision::kUndecided);
    CHECK(decided(5, 0, 5) == Decision::kUndecided);
    CHECK(decided(6, 0, 6) == Decision::kWorse);
    CHECK(decided(0, 2, 2) == Decision::kUndecided);
    CHECK(decided(0, 6, 6) == Decision::kNotWorse);
  }

  TEST_CASE("a campaign that solves far fewer tasks is worse, and in between it is open") {
    const Side good("agent", 12), bad("agent", 1, 300'000), middle("agent", 11);
    const CampaignComparison worse = compared(good, bad);
    CHECK(decision_of(worse) == Decision::kWorse);
    CHECK(*worse.methods[0].cost_ratio == doctest::Approx(3));
    CHECK(worse.methods[0].contrast.b_better == 11);
    CHECK(decision_of(compared(bad, good)) == Decision::kNotWorse);
    CHECK(decision_of(compared(good, middle)) == Decision::kUndecided);
    CHECK(render_comparison_json(worse).find("\"decision\":\"worse\"") != std::string::npos);
  }

  TEST_CASE("only tasks of equal contracts are compared, and what differs is said") {
    const Side older("agent", 6);
    Side newer("agent", 6);
    newer.registration.contracts["task-10"] = sha256("changed");
    newer.registration.contracts.erase("task-11");
    newer.registration.contracts.emplace("task-99", sha256("new"));
    newer.registration.caps["wall_ms"] = 2000;
    newer.registration.cost_model = sha256("prices");
    const CampaignComparison c = compared(older, newer);
    CHECK(c.common.size() == 10);
    CHECK(c.changed == std::vector<std::string>{"task-10"});
    CHECK(c.only_older == std::vector<std::string>{"task-11"});
    CHECK(c.only_newer == std::vector<std::string>{"task-99"});
    CHECK(c.methods[0].contrast.tasks == 10);
    REQUIRE(c.differences.size() == 2);
    CHECK(c.differences[0] == "the cap wall_ms is 1000 in the older, 2000 in the newer");
    CHECK(render_comparison_text(c).find("Provisional, because") != std::string::npos);
  }

  TEST_CASE("not worse by a one-sided test is said beside the two-sided interval") {
    std::vector<TaskCell> newer(100, TaskCell{20, 10, 0, 0}), older = newer;
    for (std::size_t i = 0; i < older.size(); ++i) older[i].success = i % 2 == 0 ? 11 : 9;
    CampaignComparison c;
    MethodComparison& agent = c.methods.emplace_back();
    agent.old_name = agent.new_name = "agent";
    agent.contrast = contrast_of(newer, older, AnalysisPlan{});
    REQUIRE(decision_of(agent, c.margin, c.alpha) == Decision::kNotWorse);
    CHECK(render_comparison_text(c).find("agent: not inferior by its lower bound -0.8 at") !=
          std::string::npos);
    agent.is_control = true;
    CHECK(render_comparison_text(c).find("by its lower bound") == std::string::npos);
  }

  TEST_CASE("what a run may spend is told in the words of all money") {
    Side older("agent", 6), newer("agent", 6);
    older.registration.envelopes["run"] = 2'000'000;
    newer.registration.envelopes["run"] = 2'500'000;
    newer.registration.caps["micro_usd"] = 100'000;
    newer.report.unit = "units";
    const CampaignComparison c = compared(older, newer);
    CHECK(c.differences == std::vector<std::string>{
                               "the cap usd is none in the older, 0.10 units in the newer",
                               "a run may spend 2.00 USD in the older, 2.50 units in the newer"});
  }

  TEST_CASE("a task that was removed from one campaign is only in the other") {
    const Side whole("agent", 6);
    Side less("agent", 6);
    less.registration.removals.push_back({"task-13", "broken", WallTime(1)});
    const CampaignComparison newer = compared(less, whole), older = compared(whole, less);
    CHECK(newer.only_newer == std::vector<std::string>{"task-13"});
    CHECK(newer.only_older.empty());
    CHECK(older.only_older == std::vector<std::string>{"task-13"});
    CHECK(older.only_newer.empty());
    CHECK(compared(less, less).only_older.empty());
  }

  TEST_CASE("runs that somebody took away are told, for they choose what is compared") {
    const Side older("agent", 6);
    Side newer("agent", 6);
    newer.report.total.cancelled = 3;
    newer.report.total.removed = 2;
    CHECK(compared(older, newer).differences ==
          std::vector<std::string>{"3 runs of the newer were cancelled",
                                   "2 runs of the newer were removed with their tasks"});
  }

  TEST_CASE("a method that is called otherwise is compared where it is named") {
    const Side older("agent-1", 6), newer("agent-2", 6);
    CHECK(compared(older, newer).methods.empty());
    CHECK(decision_of(compared(older, newer)) == Decision::kUndecided);
    const CampaignComparison c = compared(older, newer, {{"agent-1", "agent-2"}});
    REQUIRE(c.methods.size() == 1);
    CHECK(c.methods[0].old_name == "agent-1");
    CHECK(decision_of(c) == Decision::kUndecided);
    CHECK(render_comparison_text(c).find("agent-1 -> agent-2") != std::string::npos);
  }

  TEST_CASE("where no task has runs on both sides there is no ratio of costs") {
    const Side older("agent", 6);
    Side untouched("agent", 6);
    for (RunRecord& run : untouched.report.runs) {
      run.state = RunRecord::State::kCancelled;
      run.cost = {};
    }
    const CampaignComparison c = compared(older, untouched);
    REQUIRE(c.methods.size() == 1);
    CHECK(c.methods[0].contrast.tasks == 0);
    CHECK_FALSE(c.methods[0].cost_ratio);
    CHECK_FALSE(c.methods[0].time_ratio);
    CHECK(render_comparison_text(c).find("x0.00") == std::string::npos);
  }

  TEST_CASE("methods of one side are named, and an agent that is gone decides against not worse") {
    const Side older("agent", 30, 100'000, 60);
    Side newer("agent", 30, 100'000, 60);
    newer.registration.methods.emplace("added", sha256("added"));
    const CampaignComparison more = compared(older, newer);
    CHECK(decision_of(more) == Decision::kNotWorse);
    CHECK(more.methods_only_newer == std::vector<std::string>{"added"});
    CHECK(render_comparison_text(more).find("  1 only in the newer: added\n") != std::string::npos);

    const CampaignComparison less = compared(newer, older);
    CHECK(less.lost_agents == std::vector<std::string>{"added"});
    CHECK(decision_of(less) == Decision::kUndecided);
    const std::string text = render_comparison_text(less);
    CHECK(text.find("  1 only in the older: added\n") != std::string::npos);
    CHECK(text.find("Together: undecided\n  * added of the older is not in the newer, so nothing "
                    "says that it is not worse") != std::string::npos);
    CHECK(render_comparison_json(less).find("\"lost_agents\":[\"added\"]") != std::string::npos);

    // noop measures the tasks: that it is gone loses no agent.
    Side controlled = older;
    Runs runs;
    runs.records = controlled.report.runs;
    runs.ended("task-10", "c", "noop", RunOutcome::kFailure).baseline = RunRecord::Baseline::kNoop;
    controlled.report.runs = runs.records;
    controlled.registration.methods.emplace("noop", sha256("noop"));
    const CampaignComparison gone = compared(controlled, older);
    CHECK(gone.methods_only_older == std::vector<std::string>{"noop"});
    CHECK(gone.lost_agents.empty());
    CHECK(decision_of(gone) == Decision::kNotWorse);
  }

  TEST_CASE("reasons why runs ended invalid that were not there before are told") {
    Side older("agent", 6), newer("agent", 6);
    RunRecord& broken = newer.report.runs.front();
    broken.outcome = RunOutcome::kInvalid;
    broken.termination = Termination::kInfrastructure;
    const CampaignComparison c = compared(older, newer);
    REQUIRE(c.methods[0].new_invalid.size() == 1);
    CHECK(c.methods[0].new_invalid.begin()->second == 1);
  }
}
