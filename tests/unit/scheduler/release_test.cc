// Workers of several releases in one campaign.
#include <doctest/doctest.h>

#include "tests/unit/scheduler/desk.h"

using namespace proctor;
using namespace proctor::scheduler_test;

TEST_SUITE("scheduler") {
  TEST_CASE("a worker of an older release gets no run of a kind that it cannot have read") {
    PlanView plan = plan_of({0, 0});
    plan.methods = {{capability::kToolLoop}, {}};
    plan.runs[1].method = 1;
    Desk desk(plan);
    desk.start();
    desk.sync("old", 2);
    CHECK(desk.assigned == std::vector<AttemptId>{attempt_of(1)});
    const std::string why = desk.core.why(RunId(0)).text;
    CHECK(why.starts_with("it waits for a free worker with methods of kind tool_loop"));
    CHECK(why.find("; old is of a release without methods of kind tool_loop: start a newer") !=
          std::string::npos);
    CHECK(desk.core.waiting_for_workers() ==
          "1 run waits for a worker with methods of kind tool_loop");
    desk.sync("new", 1, {}, {}, 1, "method:tool_loop");
    CHECK(desk.assigned.back() == attempt_of(0));
  }
}
