// Stages with tasks and replicates of their own: what is drawn, and what a file of it may say.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/plan/plan.h"
#include "tests/unit/plan/plan_shapes.h"

using namespace proctor;
using proctor::testing::task;

namespace {

// The oracle of the draw.
PlanShape of_pilots(StageOrder second) {
  PlanShape shape;
  shape.strata_keys = {"language"};
  for (const char* id : {"c1", "c2", "c3"}) shape.tasks.push_back(task(id, {"c"}));
  for (const char* id : {"p1", "p2", "p3", "p4", "p5"}) shape.tasks.push_back(task(id, {"p"}));
  shape.methods = {"agent", "noop"};
  shape.stages = {{"feasibility", 1, 1U}, {"full", 2, std::nullopt, {}, second}};
  return shape;
}

std::vector<std::string> names(const Plan& plan, std::uint32_t from, std::uint32_t to) {
  std::vector<std::string> out;
  for (std::uint32_t r = from; r < to; ++r) out.push_back(plan.run_name(RunId(r)));
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a stage with one task of each stratum is drawn as the specification has it") {
    const Plan plan = draw_plan(of_pilots(StageOrder::kRounds)).value();
    CHECK(plan.size() == 36);
    CHECK(names(plan, 0, 8) == Names{"c1/noop/r1", "c1/agent/r1", "p1/noop/r1", "p1/agent/r1",
                                     "p3/agent/r2", "p3/noop/r2", "c3/agent/r2", "c3/noop/r2"});
    const std::uint32_t seeds[] = {1093993664, 1070867257, 2021072076, 861595799};
    for (std::uint32_t r = 0; r < 4; ++r) CHECK(plan.row(RunId(r)).seed == seeds[r]);
    CHECK(std::ranges::equal(plan.tasks_of(0), std::vector<std::uint32_t>{0, 3}));
    CHECK(plan.tasks_of(1).size() == 8);
  }

  TEST_CASE("a stage that goes task by task has all replicates of a task in one block") {
    const Plan plan = draw_plan(of_pilots(StageOrder::kTasks)).value();
    CHECK(plan.size() == 36);
    CHECK(names(plan, 4, 8) == Names{"p3/agent/r2", "p3/noop/r2", "p3/agent/r3", "p3/noop/r3"});
    CHECK(plan.row(RunId(0)).seed == 2851969262);
    CHECK(plan.row(RunId(1)).seed == 4242164623);
  }

  TEST_CASE("each stage has each of its tasks under each method as often as it says") {
    PlanShape shape = of_pilots(StageOrder::kRounds);
    shape.stages = {{"few", 2, std::nullopt, {"p4", "c2"}}, {"some", 1, 4U}, {"all", 3}};
    const Plan plan = draw_plan(shape).value();
    CHECK(plan.size() == (2 * 2 + (3 + 4) + 3 * 8) * 2);
    std::map<std::string, std::map<std::pair<std::uint32_t, std::uint16_t>, int>> met;
    std::set<std::string> all;
    for (std::uint32_t r = 0; r < plan.size(); ++r) {
      const PlanRow& row = plan.row(RunId(r));
      ++met[plan.stage(RunId(r))][{row.task, row.method}];
      all.insert(plan.run_name(RunId(r)));
    }
    CHECK(all.size() == plan.size());  // no name twice
    CHECK(met["few"].size() == 4);
    for (const auto& [cell, n] : met["few"]) CHECK(n == 2);
    CHECK(met["some"].size() == 14);
    for (const auto& [cell, n] : met["some"]) CHECK(n == 1);
    CHECK(met["all"].size() == 16);
    for (const auto& [cell, n] : met["all"]) CHECK(n == 3);
    CHECK(plan.find("c1/noop/r1") == std::nullopt);  // not in the first stage
    CHECK(plan.find("c2/noop/r1") != std::nullopt);
  }

  TEST_CASE("stages without keys of their own are drawn as they were before there were any") {
    PlanShape shape = of_pilots(StageOrder::kRounds);
    shape.stages = {{"pilot", 1}, {"main", 2}};
    PlanShape named = shape;
    for (const PlanTask& t : shape.tasks) named.stages[0].tasks.push_back(t.id);
    CHECK(to_csv(draw_plan(shape).value()) == to_csv(draw_plan(named).value()));
    // Drawn by this tool before stages had keys.
    CHECK(sha256(to_csv(draw_plan(shape).value())).short_hex() == "ddcae3be0332");
  }

  TEST_CASE("a file of such a plan is read back, field by field too, and a lost run is named") {
    PlanShape shape = of_pilots(StageOrder::kRounds);
    shape.stages = {{"few", 2, std::nullopt, {"p4", "c2"}}, {"some", 1, 1U}, {"all", 1}};
    const Plan plan = draw_plan(shape).value();
    const std::string csv = to_csv(plan);
    CHECK(parse_plan("plan.csv", csv, shape).value() == plan);
    // The last run's seed: no longer the text that is drawn, so it is read field by field.
    const RunId last(plan.size() - 1);
    const std::string tail = "," + std::to_string(plan.row(last).seed) + ",";
    std::string other = csv;
    other.replace(other.rfind(tail), tail.size(), ",7,");
    CHECK(parse_plan("plan.csv", other, shape).value().row(last).seed == 7);
    const std::string less = other.substr(0, other.rfind('\n', other.size() - 2) + 1);
    CHECK(parse_plan("plan.csv", less, shape).error().detail ==
          "plan.csv: found " + std::to_string(plan.size() - 1) + " runs, expected " +
              std::to_string(plan.size()) + ": " + plan.run_name(last) + " is missing");
    // A run of a task that its stage has not.
    const std::size_t at = other.find("c2/noop/r1");
    REQUIRE(at != std::string::npos);
    const std::size_t line = other.rfind('\n', at) + 1;
    const std::size_t bytes = other.find('\n', at) + 1 - line;
    std::string moved = other.substr(line, bytes);
    const std::string digest = task("c2", {}).digest.hex();
    moved.replace(moved.find(digest), digest.size(), task("c1", {}).digest.hex());
    for (const char* before : {",c2/", ",c2,", ":c2\n"})
      moved.replace(moved.find(before) + 1, 2, "c1");
    std::string strange = other;
    strange.replace(line, bytes, moved);
    const auto refused = parse_plan("plan.csv", strange, shape);
    REQUIRE(!refused.ok());
    CHECK(refused.error().detail.find("expected a task of stage few") != std::string::npos);
  }

  TEST_CASE("a shape whose stages have too many runs is refused") {
    PlanShape shape = of_pilots(StageOrder::kRounds);
    shape.stages = {{"few", 7'000'000, 1U}, {"all", 1}};
    CHECK(draw_plan(shape).error().detail.find("expected at most") != std::string::npos);
  }
}
