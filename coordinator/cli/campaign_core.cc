#include "coordinator/cli/campaign_core.h"

#include "coordinator/shell/restore.h"

namespace proctor::cli {

SchedulerSettings scheduler_settings(const FrozenCampaign& frozen) {
  SchedulerSettings out;
  out.infrastructure_retries = frozen.campaign.infrastructure_retries;
  out.retries = frozen.campaign.retries;
  out.cost_model = frozen.campaign.cost_model;
  out.watch = frozen.campaign.watch;
  out.rates = frozen.campaign.rates;
  return out;
}

Result<std::unique_ptr<Scheduler>> core_of(const FrozenCampaign& frozen,
                                           const RestoredState& state) {
  return restore_scheduler(frozen.campaign, frozen.plan, frozen.removed, scheduler_settings(frozen),
                           state);
}

}  // namespace proctor::cli
