#include "coordinator/shell/campaign_view.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "coordinator/shell/restore.h"

namespace proctor {

CampaignView::Begun CampaignView::begin(Time now) {
  Begun out;
  for (Command& c : core->start(now)) {
    out.over = out.over || std::holds_alternative<CampaignEnded>(c);
    if (auto* persist = std::get_if<Persist>(&c))
      std::ranges::move(persist->writes, std::back_inserter(out.writes));
  }
  return out;
}

Scheduler::Counts CampaignView::counts() const {
  Scheduler::Counts out = core->counts();
  const auto waits = static_cast<std::uint64_t>(std::count_if(
      state.parked.begin(), state.parked.end(),
      [this](const ParkedRun& parked) { return core->phase(parked.run) == RunPhase::kQueued; }));
  out.queued -= waits;
  out.parked += waits;
  return out;
}

Result<CampaignView> view_campaign(const Campaign& campaign, const Plan& plan,
                                   const std::vector<RunId>& removed,
                                   const SchedulerSettings& settings, RestoredState state) {
  CampaignView out{std::move(state), nullptr};
  PROCTOR_TRY(out.core, restore_scheduler(campaign, plan, removed, settings, out.state));
  return out;
}

}  // namespace proctor
