// Leaderboards: which campaigns share a table, and ranks that are sets.
#include "coordinator/aggregate/leaderboard.h"

#include <doctest/doctest.h>

#include "common/base/json.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Made {
  Registration registration;
  CampaignReport report;
};

// `solves`: of task t under the method, by its position.
Made campaign(const std::string& id, std::size_t tasks,
              const std::map<std::string, bool (*)(std::size_t)>& methods) {
  Made out;
  Runs runs;
  for (std::size_t t = 0; t < tasks; ++t) {
    const std::string task = "task-" + std::to_string(100 + t);
    out.registration.contracts[task] = sha256("contract of " + task);
    for (const auto& [method, solves] : methods)
      for (int r = 0; r < 2; ++r)
        runs.ended(task, "go", method, solves(t) ? RunOutcome::kSuccess : RunOutcome::kFailure);
  }
  out.registration.campaign = id;
  out.registration.tool_version = "1";
  out.registration.cost_model_version = "prices-1";
  out.report = build_report({id, "USD", {"language"}, std::move(runs.records), 0.05});
  out.report.journal_head = "abcd";
  return out;
}

bool most(std::size_t t) {
  return t % 10 != 0;
}
bool nearly_most(std::size_t t) {
  return t % 9 != 1;
}
bool few(std::size_t t) {
  return t % 7 == 0;
}
bool always(std::size_t /*t*/) {
  return true;
}
bool never(std::size_t /*t*/) {
  return false;
}

}  // namespace

TEST_SUITE("leaderboard") {
  TEST_CASE("campaigns with equal contracts share a table, and ranks are sets") {
    for (const std::size_t tasks : {24U, 60U}) {  // by pairs, and jointly
      CAPTURE(tasks);
      const Made a = campaign("a-1", tasks, {{"one", most}, {"weak", few}});
      const Made b = campaign("b-2", tasks, {{"two", nearly_most}});
      const Leaderboard board =
          make_leaderboard({{a.registration, a.report, "a"}, {b.registration, b.report, "b"}}, {});
      REQUIRE(board.tables.size() == 1);
      const BoardTable& t = board.tables.front();
      REQUIRE(t.rows.size() == 3);
      CHECK(t.tasks.size() == tasks);
      // The two good ones are not told apart, whatever their order; the third is worse than both.
      CHECK(t.rows[0].ranks == RankSet{1, 2});
      CHECK(t.rows[1].ranks == RankSet{1, 2});
      CHECK(t.rows[2].ranks == RankSet{3, 3});
      CHECK(t.rows[2].method == "weak");
      CHECK(t.rows[0].runs == 2 * tasks);
      CHECK(t.rows[0].verified());
      CHECK(t.differences.empty());
      REQUIRE(t.rows[0].cost_of_run);
      CHECK(*t.rows[0].cost_of_run == doctest::Approx(0.100001));
    }
  }

  TEST_CASE("a difference without any spread is told by signs alone") {
    // Always against never: of five tasks the exact p is 0.0625, of six 0.03125.
    for (const std::size_t tasks : {5U, 6U, 60U}) {
      CAPTURE(tasks);
      const Made a = campaign("a-1", tasks, {{"all", always}, {"none", never}});
      const Leaderboard board = make_leaderboard({{a.registration, a.report, "a"}}, {});
      const BoardTable& t = board.tables.front();
      REQUIRE(t.rows.size() == 2);
      const bool told = 6 <= tasks;
      CHECK(t.rows[0].ranks == (told ? RankSet{1, 1} : RankSet{1, 2}));
      CHECK(t.rows[1].ranks == (told ? RankSet{2, 2} : RankSet{1, 2}));
      CHECK(t.rank_rule.find("all tasks differ alike by the exact p of sign flips") !=
            std::string::npos);
    }
  }

  TEST_CASE("another contract of one task is another table") {
    const Made a = campaign("a-1", 5, {{"one", most}});
    Made b = campaign("b-2", 5, {{"two", most}});
    b.registration.contracts["task-104"] = sha256("changed");
    const std::vector<BoardCampaign> both = {{a.registration, a.report, "a"},
                                             {b.registration, b.report, "b"}};
    CHECK(make_leaderboard(both, {}).tables.size() == 2);
    CHECK(render_leaderboard_text(make_leaderboard(both, {})).find("Tables are apart because") !=
          std::string::npos);
    // Of the tasks that are the same they share one.
    const Leaderboard chosen = make_leaderboard(both, {"task-100", "task-101"});
    REQUIRE(chosen.tables.size() == 1);
    CHECK(chosen.tables.front().rows.front().tasks == 2);
    // And without the changed one, which was taken out of both.
    b.registration.contracts["task-104"] = a.registration.contracts.at("task-104");
    b.registration.removals = {{"task-104", "broken", WallTime(0)}};
    CHECK(make_leaderboard(both, {}).tables.size() == 2);
  }

  TEST_CASE("what keeps rows from being compared is said, and what cannot be checked") {
    Made a = campaign("a-1", 4, {{"one", most}});
    Made b = campaign("b-2", 4, {{"two", most}});
    b.registration.caps["tokens"] = 1'000;
    b.registration.cost_model = sha256("other prices");
    b.registration.tool_version = "2";
    a.report.runs[0].report = Digest();
    b.report.runs[0].state = RunRecord::State::kCancelled;
    const Leaderboard board =
        make_leaderboard({{a.registration, a.report, "a"}, {b.registration, b.report, "b"}}, {});
    const BoardTable& t = board.tables.front();
    REQUIRE(t.differences.size() == 4);
    CHECK(t.differences[0] == "caps of a run differ: (none) (tokens 1000)");
    CHECK(t.differences[3] == "two of b-2: 1 run parked, cancelled or removed");
    const std::string text = render_leaderboard_text(board);
    CHECK(text.find("unverified, for reports of its runs are missing: one of a-1") !=
          std::string::npos);
    const Json json = parse_json(render_leaderboard_json(board)).value();
    CHECK(json["tables"][0]["rows"].size() == 2);
    CHECK(json["tables"][0]["rows"][0]["verified"] == false);
  }

  TEST_CASE("a control has a row of its own and no rank, and counts in no agent's") {
    Made a = campaign("a-1", 24, {{"able", most}, {"feeble", few}, {"noop", never}, {"z", always}});
    for (RunRecord& run : a.report.runs) {
      if (run.method == "noop") run.baseline = RunRecord::Baseline::kNoop;
      if (run.method == "z") run.baseline = RunRecord::Baseline::kReference;
    }
    const Leaderboard board = make_leaderboard({{a.registration, a.report, "a"}}, {});
    const std::vector<BoardRow>& rows = board.tables.front().rows;
    REQUIRE(rows.size() == 4);
    CHECK(rows[0].method == "able");
    CHECK(rows[0].ranks == RankSet{1, 1});
    CHECK(rows[1].ranks == RankSet{2, 2});
    CHECK(rows[2].method == "noop");
    CHECK_FALSE(rows[2].ranks);
    CHECK_FALSE(rows[3].ranks);
    CHECK(*rows[3].rate.value == 1);
    const Json json = parse_json(render_leaderboard_json(board)).value();
    CHECK(json["tables"][0]["rows"][3]["ranks"].is_null());
    CHECK(render_leaderboard_csv(board).find(",a-1,noop,,,0,") != std::string::npos);
    CHECK(render_leaderboard_text(board).find("control") != std::string::npos);
  }

  TEST_CASE("one row, no run, and no campaign have no rank to tell") {
    CHECK(render_leaderboard_text(make_leaderboard({}, {})).empty());
    const Made a = campaign("a-1", 3, {{"one", few}});
    const Leaderboard one = make_leaderboard({{a.registration, a.report, "a"}}, {});
    CHECK(one.tables.front().rows.front().ranks == RankSet{1, 1});
    Made b = campaign("b-2", 3, {{"one", few}, {"two", few}});
    for (RunRecord& run : b.report.runs) run.state = RunRecord::State::kParked;
    const Leaderboard parked = make_leaderboard({{b.registration, b.report, "b"}}, {});
    for (const BoardRow& row : parked.tables.front().rows) {
      CHECK_FALSE(row.rate.value);
      CHECK(row.ranks == RankSet{1, 2});
    }
    CHECK(render_leaderboard_csv(parked).find("-1.#") == std::string::npos);
  }
}
