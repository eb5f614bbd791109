#include "coordinator/cli/campaign_core.h"

#include <utility>

namespace proctor::cli {

SchedulerSettings scheduler_settings(const FrozenCampaign& frozen) {
  SchedulerSettings out;
  out.campaign = frozen.id;
  out.infrastructure_retries = frozen.campaign.infrastructure_retries;
  out.retries = frozen.campaign.retries;
  out.cost_model = frozen.campaign.cost_model;
  out.watch = frozen.campaign.watch;
  out.rates = frozen.campaign.rates;
  return out;
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, RestoredState state) {
  return view_campaign(frozen.campaign, frozen.plan, frozen.removed, scheduler_settings(frozen),
                       std::move(state));
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, JournalReader& journal) {
  PROCTOR_TRY(RestoredState state, journal.load());
  return view_of(frozen, std::move(state));
}

}  // namespace proctor::cli
