// schemas/pilot_randomization_plan.schema.json describes what we write, checked by a validator that
// is not ours.
#include <doctest/doctest.h>

#include "common/plan/plan.h"
#include "tests/support/json_schema.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

PlanShape shape() {
  PlanShape s;
  s.strata_keys = {"language"};
  s.tasks = {{"json-lib", sha256("a"), {"go"}}, {"cli", sha256("b"), {"rust"}}};
  s.methods = {"noop", "my-agent"};
  s.stages = {{"pilot", 1}, {"main", 2}};
  return s;
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a plan satisfies its schema and an altered one does not") {
    const JsonSchema schema("pilot_randomization_plan");
    const Json rows = csv_rows(to_csv(draw_plan(shape()).value()));
    REQUIRE(rows.size() == 12);
    CHECK(schema.accepts(rows));
    for (const auto& cell : rows[0].items()) {
      CAPTURE(cell.first);
      Json wrong = rows;
      wrong[0][cell.first] = "not, this";
      CHECK(schema.accepts(wrong) ==
            (cell.first == "language" || cell.first == "method" || cell.first == "stage"));
      wrong[0].erase(cell.first);
      CHECK(schema.accepts(wrong) == (cell.first == "language"));
    }
  }
}
