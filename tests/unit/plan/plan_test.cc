#include "common/plan/plan.h"
#include "common/contract/campaign.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/plan/plan_shapes.h"

using namespace proctor;
using proctor::testing::small_shape;
using proctor::testing::task;

TEST_SUITE("plan") {
  TEST_CASE("every method meets every task equally often and in one block") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    REQUIRE(plan->size() == 4 * 3 * 3);
    std::map<std::pair<std::string, std::string>, int> met;
    for (std::uint32_t i = 0; i < plan->size(); ++i) {
      ++met[{plan->task(RunId(i)).id, plan->method(RunId(i))}];
      const std::uint32_t block = i - i % 3;
      CHECK(plan->row(RunId(i)).task == plan->row(RunId(block)).task);
      CHECK(plan->row(RunId(i)).replicate == plan->row(RunId(block)).replicate);
    }
    CHECK(met.size() == 12);
    for (const auto& [pair, times] : met) CHECK(times == 3);
  }

  TEST_CASE("stages run one after the other and replicates are counted through them") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    for (std::uint32_t i = 0; i < plan->size(); ++i) {
      CHECK(plan->row(RunId(i)).replicate == i / 12 + 1);
      CHECK(plan->stage(RunId(i)) == (i < 12 ? "pilot" : "main"));
    }
  }

  TEST_CASE("the order does not depend on the order of the files that name tasks and methods") {
    PlanShape other = small_shape();
    std::ranges::reverse(other.tasks);
    std::ranges::reverse(other.methods);
    const auto a = draw_plan(small_shape());
    const auto b = draw_plan(other);
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    CHECK(*a == *b);
  }

  TEST_CASE("another seed gives another order and other run seeds") {
    PlanShape other = small_shape();
    other.seed = 1337;
    const auto a = draw_plan(small_shape());
    const auto b = draw_plan(other);
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    CHECK(!std::ranges::equal(a->rows(), b->rows()));
  }

  TEST_CASE("strata are spread through each round in proportion to their sizes") {
    PlanShape shape;
    shape.strata_keys = {"language"};
    for (int i = 0; i < 12; ++i)
      shape.tasks.push_back(task("t" + std::to_string(i), {i < 8 ? "c" : i < 11 ? "go" : "rust"}));
    shape.methods = {"noop"};
    shape.stages = {{"main", 1}};
    const auto plan = draw_plan(shape);
    REQUIRE(plan.ok());
    int seen_c = 0;
    for (std::uint32_t i = 0; i < 12; ++i) {
      seen_c += plan->task(RunId(i)).strata[0] == "c" ? 1 : 0;
      const double fair = 8.0 * (i + 1) / 12;  // never more than one away from its share
      CHECK(seen_c - fair < 1.01);
      CHECK(fair - seen_c < 1.01);
    }
  }

  TEST_CASE("a run has a name and an envelope and is found by its name") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < plan->size(); ++i) {
      const std::string name = plan->run_name(RunId(i));
      names.insert(name);
      CHECK(plan->find(name) == RunId(i));
      CHECK(plan->envelope(RunId(i)) ==
            "stage:" + plan->stage(RunId(i)) + "/task:" + plan->task(RunId(i)).id);
    }
    CHECK(names.size() == plan->size());
    CHECK(names.count("json-lib/noop/r3") == 1);
    for (const char* absent :
         {"", "json-lib", "json-lib/noop", "json-lib/noop/r4", "json-lib/noop/r0",
          "json-lib/noop/r1x", "json-lib/nop/r1", "other/noop/r1"})
      CHECK(!plan->find(absent));
  }

  TEST_CASE("a shape that cannot be planned is refused with what was found and expected") {
    struct Row {
      const char* what;
      void (*spoil)(PlanShape&);
      const char* expected;
    };
    const Row rows[] = {
        {"no task", [](PlanShape& s) { s.tasks.clear(); }, "tasks: found none"},
        {"no method", [](PlanShape& s) { s.methods.clear(); }, "methods: found 0"},
        {"task twice", [](PlanShape& s) { s.tasks[1] = s.tasks[0]; },
         "\"json-lib\" is named twice"},
        {"long name", [](PlanShape& s) { s.tasks[0].id.assign(101, 'x'); }, "found 101 bytes"},
        {"reserved key", [](PlanShape& s) { s.strata_keys[0] = "seed"; },
         "is a column of the plan"},
        {"too many runs", [](PlanShape& s) { s.stages[0].replicates = 0xFFFFFFFF; },
         "expected at most 16000000 runs"},
    };
    for (const Row& row : rows) {
      CAPTURE(std::string(row.what));
      PlanShape shape = small_shape();
      row.spoil(shape);
      const auto plan = draw_plan(shape);
      REQUIRE(!plan.ok());
      CHECK(plan.error().code == Errc::kInvalid);
      CAPTURE(plan.error().detail);
      CHECK(plan.error().detail.find(row.expected) != std::string::npos);
    }
  }

  TEST_CASE("a campaign gives each stage its replicates and each task its strata") {
    Campaign campaign;
    campaign.strata = {"language"};
    campaign.replicates = 2;
    campaign.stages = {{"pilot", {}}, {"main", {}}};
    campaign.methods.resize(1);
    campaign.methods[0].name = "noop";
    campaign.contracts.resize(2);
    campaign.contracts[0].id = "b";
    campaign.contracts[0].strata = {{"language", "go"}, {"type", "feature"}};
    campaign.contracts[1].id = "a";
    const PlanShape shape = shape_of(campaign);
    CHECK(shape.seed == 20260307);
    CHECK(shape.stages == std::vector<PlanStage>{{"pilot", 2}, {"main", 2}});
    CHECK(shape.tasks[0].strata == std::vector<std::string>{"go"});
    CHECK(shape.tasks[1].strata == std::vector<std::string>{"none"});
    const auto plan = draw_plan(shape);
    REQUIRE(plan.ok());
    CHECK(plan->size() == 8);
  }
}
