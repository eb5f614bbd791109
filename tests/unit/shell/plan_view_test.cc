// What runs need of a worker, as a campaign's contracts and methods say it.
#include "coordinator/shell/plan_view.h"

#include <doctest/doctest.h>

#include "coordinator/core/roster.h"

using namespace proctor;

TEST_SUITE("shell") {
  TEST_CASE("a run of a tool_loop needs a worker whose release has that kind") {
    Campaign campaign;
    campaign.contracts.emplace_back().id = "add";
    campaign.stages = {{"main", {}}};
    campaign.methods.resize(2);
    campaign.methods[0].name = "loop";
    campaign.methods[0].kind = Method::Kind::kToolLoop;
    campaign.methods[0].gateway.emplace().model = "big";
    campaign.methods[1].name = "noop";
    const Result<Plan> plan = draw_plan(shape_of(campaign));
    REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().detail));
    const PlanView view = make_plan_view(campaign, *plan);
    REQUIRE(view.runs.size() == 2);
    for (std::uint32_t run = 0; run < 2; ++run) {
      const bool loop = plan->method(RunId(run)) == "loop";
      CHECK((view.needs_of(RunId(run)) & capability::kToolLoop) ==
            (loop ? capability::kToolLoop : 0));
    }
  }
}
