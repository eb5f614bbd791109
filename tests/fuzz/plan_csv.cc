// pilot_randomization_plan.csv: a plan that is accepted has every run once and is written again as
// what was read; anything else names file and line.
#include "tests/fuzz/fuzz.h"
#include "tests/unit/plan/plan_shapes.h"

namespace proctor::fuzz::plan_csv {

void target(std::string_view bytes) {
  PlanShape shape;
  shape.strata_keys = {"language"};
  shape.tasks = {testing::task("sum", {"python"})};
  shape.methods = {"agent", "noop"};
  shape.stages = {{"main", 1}};
  const Result<Plan> plan = parse_plan("plan.csv", bytes, shape);
  if (!plan.ok()) {
    PROCTOR_ASSERT(plan.error().detail.starts_with("plan.csv:"));
    return;
  }
  PROCTOR_ASSERT(plan->size() == 2);
  PROCTOR_ASSERT(must(parse_plan("plan.csv", to_csv(*plan), shape)) == *plan);
}

}  // namespace proctor::fuzz::plan_csv
