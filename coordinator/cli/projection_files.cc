#include "coordinator/cli/projection_files.h"

#include <map>
#include <tuple>

#include "common/contract/campaign_parser.h"
#include "common/contract/cost_model.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

constexpr std::uint64_t kOneUnit = 1'000'000;

// Runs that are alike share a kind; so do expected actions.
class KindTable {
 public:
  KindTable(const Campaign& campaign, const Plan& plan, ProjectionInput& out)
      : campaign_(campaign), plan_(plan), view_(make_plan_view(campaign, plan)), out_(out) {
    for (const ScopeSpec& s : view_.scopes) out_.scopes.push_back({s.name, s.cap});
  }

  void add(RunId run) {
    const PlanRow& row = plan_.row(run);
    const auto [it, added] = kinds_.emplace(std::tuple(row.stage, row.task, row.method),
                                            static_cast<std::uint32_t>(out_.kinds.size()));
    if (added) out_.kinds.push_back(kind_of(run));
    out_.runs.push_back({it->second, row.replicate});
  }

 private:
  ProjectionInput::Kind kind_of(RunId run) {
    ProjectionInput::Kind kind{plan_.stage(run), plan_.task(run).id, plan_.method(run), {}, {}, 0};
    for (const ScopeId s : view_.path(run)) kind.path.push_back(s.raw());
    kind.ask = view_.task_of(run).ask;
    if (campaign_.cost_inputs) kind.usage = usage_of(kind.task, kind.method);
    return kind;
  }

  // Requires: the inputs were checked, so that every run has an entry.
  std::uint32_t usage_of(const std::string& task, const std::string& method) {
    const std::vector<ExpectedAction>* entry = campaign_.cost_inputs->find(task, method);
    PROCTOR_ASSERT(entry != nullptr);
    const auto [it, added] = usages_.emplace(entry, static_cast<std::uint32_t>(out_.usages.size()));
    if (added) {
      out_.usages.push_back(*entry);
      if (0 < campaign_.cost_model.run)
        out_.usages.back().push_back({"run", "run", "", "", kOneUnit, campaign_.cost_model.run,
                                      ExpectedAction::Price::kRow, CostCategory::kOverhead});
    }
    return it->second;
  }

  const Campaign& campaign_;
  const Plan& plan_;
  PlanView view_;
  ProjectionInput& out_;
  std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint16_t>, std::uint32_t> kinds_;
  std::map<const std::vector<ExpectedAction>*, std::uint32_t> usages_;  // looked up, never iterated
};

}  // namespace

ProjectionInput projection_input(const Campaign& campaign, const Plan& plan,
                                 const Registration* registration) {
  ProjectionInput out;
  out.campaign = registration == nullptr ? campaign.name : campaign_id(*registration);
  out.abstract = campaign.cost_model.abstract();
  out.prices = out.abstract
                   ? campaign.cost_model.version
                   : std::string(kCostModelFile) + " " + campaign.cost_model.digest.short_hex();
  out.registered = registration != nullptr;
  if (campaign.cost_inputs) {
    out.inputs = campaign.cost_inputs->digest.short_hex();
    out.lost_micro = campaign.cost_inputs->lost_micro;
    out.inputs_registered =
        registration != nullptr && registration->cost_inputs == campaign.cost_inputs->digest;
  }
  out.attempts_max = 1 + campaign.infrastructure_retries + campaign.retries.overload;
  out.slots = campaign.workers * campaign.slots;
  out.reviews_priced = human_minute_price(campaign.cost_model).ok();
  KindTable kinds(campaign, plan, out);
  for (std::uint32_t r = 0; r < plan.size(); ++r) kinds.add(RunId(r));
  return out;
}

}  // namespace proctor::cli
