// What runs need of a worker, as a campaign's contracts and methods say it.
#include "coordinator/shell/campaign_view.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "coordinator/core/roster.h"

using namespace proctor;

namespace {

Campaign of_release() {
  Campaign campaign;
  campaign.contracts.emplace_back().id = "add";
  campaign.stages = {{"main", {}}};
  campaign.methods.resize(3);
  campaign.methods[0].name = "loop";
  campaign.methods[0].kind = Method::Kind::kToolLoop;
  campaign.methods[0].gateway.emplace().models[0].name = "big";
  campaign.methods[1].name = "noop";
  campaign.methods[2].name = "by-mcp";
  campaign.methods[2].kind = Method::Kind::kCommand;
  campaign.methods[2].gateway.emplace().tools = MethodGateway::Tools::kOffered;
  return campaign;
}

// By method: which release its runs need.
std::map<std::string, std::uint64_t> needs_in(const Campaign& campaign) {
  const Result<Plan> plan = draw_plan(shape_of(campaign));
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().detail));
  const PlanView view = make_plan_view(campaign, *plan);
  std::map<std::string, std::uint64_t> out;
  for (std::uint32_t run = 0; run < plan->size(); ++run)
    out[plan->method(RunId(run))] = view.needs_of(RunId(run)) & capability::kOfRelease;
  return out;
}

}  // namespace

TEST_SUITE("shell") {
  TEST_CASE("a run needs a worker whose release has what its method and its contract ask for") {
    using Needs = std::map<std::string, std::uint64_t>;
    Campaign campaign = of_release();
    CHECK(needs_in(campaign) ==
          Needs{{"loop", capability::kToolLoop}, {"noop", 0}, {"by-mcp", capability::kAgentTools}});
    // A contract that nobody of before can read is nobody's of before.
    campaign.contracts[0].suites = {{"unit", "make test"}};
    CHECK(needs_in(campaign) == Needs{{"loop", capability::kOfRelease},
                                      {"noop", capability::kAgentTools},
                                      {"by-mcp", capability::kAgentTools}});
  }
}
