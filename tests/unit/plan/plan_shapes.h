#pragma once
// Shapes that several tests of plans use.
#include <string>

#include "common/plan/plan.h"

namespace proctor::testing {

inline PlanTask task(std::string id, std::vector<std::string> strata) {
  const Digest digest = sha256(id);
  return {std::move(id), digest, std::move(strata)};
}

inline PlanShape small_shape() {
  PlanShape shape;
  shape.strata_keys = {"language", "type"};
  shape.tasks = {task("json-lib", {"python", "bug_fix"}), task("csv-tool", {"go", "feature"}),
                 task("web-api", {"python", "bug_fix"}), task("parser", {"rust", "refactor"})};
  shape.methods = {"reference", "noop", "scripted"};
  shape.stages = {{"pilot", 1}, {"main", 2}};
  return shape;
}

}  // namespace proctor::testing
