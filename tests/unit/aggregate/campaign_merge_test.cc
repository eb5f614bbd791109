// What may be pooled, what may not, and why.
#include "coordinator/aggregate/campaign_comparison.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct MergeScene {
  Registration registration;
  ReportInput runs;
};

// Every task under both methods, twice.
MergeScene scene(const std::string& id, const std::vector<std::string>& tasks) {
  MergeScene out;
  Runs runs;
  for (const std::string& task : tasks) {
    out.registration.contracts[task] = sha256("contract of " + task);
    for (const char* method : {"agent", "noop"})
      for (int r = 0; r < 2; ++r)
        runs.ended(task, "go", method,
                   method[0] == 'a' ? RunOutcome::kSuccess : RunOutcome::kFailure);
  }
  for (const char* method : {"agent", "noop"}) out.registration.methods[method] = sha256(method);
  out.registration.campaign = id;
  out.registration.strata = {"language"};
  out.registration.caps["tokens"] = 1'000;
  out.runs = {id, "USD", {"language"}, std::move(runs.records), 0.05};
  out.runs.contrasts = {{"agent", "noop"}};
  out.runs.journal_head = "journal of " + id;
  return out;
}

std::vector<std::string> why(const MergeScene& a, const MergeScene& b) {
  return why_not_pooled({{a.registration, a.runs}, {b.registration, b.runs}});
}

}  // namespace

TEST_SUITE("merge") {
  TEST_CASE(
      "replicates of the same tasks are pooled, and what not all have is left out and named") {
    const MergeScene a = scene("a", {"x", "y", "only-a"}), b = scene("b", {"x", "y"});
    REQUIRE(why(a, b).empty());
    const ReportInput pool = pooled({{a.registration, a.runs}, {b.registration, b.runs}});
    CHECK(pool.runs.size() == 16);
    std::set<std::string> names;
    for (const RunRecord& run : pool.runs) names.insert(run.name);
    CHECK(names.size() == 16);
    CHECK(names.contains("x/agent/r4"));
    REQUIRE(pool.deviations.size() == 3);
    CHECK(pool.deviations[2].starts_with("their plans have one seed"));
    CHECK(pool.deviations[0].find("exploratory") != std::string::npos);
    CHECK(pool.deviations[1] == "1 tasks of a are not in all campaigns and are left out: only-a");
    const CampaignReport report = build_report(pool);
    CHECK(report.rows.front().success_rate.n == 8);
    CHECK(report.rows.front().by_task->tasks == 2);
  }

  TEST_CASE("no attempt is pooled twice, whatever the journals are") {
    const MergeScene a = scene("a", {"x"});
    const auto says = [&](const MergeScene& other) {
      const std::vector<std::string> said = why(a, other);
      return said.size() == 1 ? said.front().substr(0, said.front().find(" are in two")) : "";
    };
    CHECK(says(a) == "4 runs of a");
    // A copy that was resumed has another journal, and one from before seals none.
    MergeScene copy = a;
    for (const char* head : {"that of the copy", ""}) {
      copy.runs.journal_head = head;
      CHECK(says(copy) == "4 runs of a");
    }
    // Copied when one run had ended, and another was asked for and came to nothing on either side.
    for (RunRecord& run : copy.runs.runs) run.report = sha256("second " + run.name);
    CHECK(why(a, copy).empty());
    copy.runs.runs[0].report = a.runs.runs[0].report;
    CHECK(says(copy) == "1 runs of a");
    MergeScene first = a, second = copy;
    for (MergeScene* side : {&first, &second}) {
      for (RunRecord& run : side->runs.runs) run.report = Digest();
      side->runs.runs[1].first_asked_ms = 5;
    }
    CHECK(why_not_pooled({{first.registration, first.runs}, {second.registration, second.runs}})
              .size() == 1);
    // One that was run again asked anew.
    second.runs.runs[1].first_asked_ms = 6;
    CHECK(why_not_pooled({{first.registration, first.runs}, {second.registration, second.runs}})
              .empty());
    // The last two of three are one.
    const MergeScene b = scene("b", {"x"});
    CHECK(why_not_pooled(
              {{a.registration, a.runs}, {b.registration, b.runs}, {b.registration, b.runs}})
              .size() == 1);
  }

  TEST_CASE("each reason against pooling is a sentence") {
    const MergeScene a = scene("a", {"x", "y"});
    struct Row {
      const char* says;
      void (*change)(MergeScene&);
    };
    const Row rows[] = {
        {"the contract of task x is",
         [](MergeScene& s) { s.registration.contracts["x"] = sha256("other"); }},
        {"method agent is", [](MergeScene& s) { s.registration.methods["agent"] = sha256("o"); }},
        {"cap tokens is 1000 in the first and 2000 in b",
         [](MergeScene& s) { s.registration.caps["tokens"] = 2'000; }},
        {"cap wall_ms is none in the first and 5 in b",
         [](MergeScene& s) { s.registration.caps["wall_ms"] = 5; }},
        {"the envelope of a run is none in the first and 2.00 USD in b",
         [](MergeScene& s) { s.registration.envelopes["run"] = 2'000'000; }},
        {"cap usd is none in the first and 0.000007 units in b",
         [](MergeScene& s) {
           s.registration.caps["micro_usd"] = 7;
           s.runs.unit = "units";
         }},
        {"the strata of b are others", [](MergeScene& s) { s.registration.strata = {}; }},
        {"the price table of b is another",
         [](MergeScene& s) { s.registration.cost_model = sha256("prices"); }},
        {"the plan of analysis of b is another",
         [](MergeScene& s) { s.registration.analysis_plan.emplace(); }},
        {"1 run of b is open:",
         [](MergeScene& s) { s.runs.runs[0].state = RunRecord::State::kRunning; }},
        {"1 run of b is parked for money:",
         [](MergeScene& s) { s.runs.runs[0].state = RunRecord::State::kParked; }},
        {"they have no task in common",
         [](MergeScene& s) {
           s.registration.contracts = {{"z", sha256("z")}};
         }},
        {"they have no method in common",
         [](MergeScene& s) {
           s.registration.methods = {{"z", sha256("z")}};
         }},
    };
    for (const Row& row : rows) {
      CAPTURE(row.says);
      MergeScene b = scene("b", {"x", "y"});
      row.change(b);
      const std::vector<std::string> said = why(a, b);
      REQUIRE(said.size() == 1);
      CHECK_MESSAGE(said.front().starts_with(row.says), said.front());
    }
  }
}
