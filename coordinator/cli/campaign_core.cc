#include "coordinator/cli/campaign_core.h"

#include <utility>

#include "coordinator/cli/journal_around.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/behind.h"

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

Result<RestoredState> load_whole(const FrozenCampaign& frozen, JournalReader& journal) {
  constexpr std::int64_t kSlackMs = 3'600'000;  // a clock that was set back an hour hides nothing
  // Who writes it now has looked, and knows more than when this reader began.
  if (journal_owner(frozen.folder.journal())) return journal.load();
  PROCTOR_TRY(const std::optional<WallTime> last, journal.last_fact());
  const std::vector<Evidence> around =
      evidence_of(frozen.folder, frozen.plan, last ? last->raw() - kSlackMs : 0);
  PROCTOR_TRY(RestoredState state, journal.load());
  if (state.last_epoch == Epoch(0)) {  // a Redis and the last coordinator's word may know of lives
    PROCTOR_TRY(const Around all, look_around(frozen));
    if (!all.problems.empty()) return behind_error(frozen.folder, all.problems);
  }
  if (unknown_evidence(around, state).empty()) return state;
  // This reader may hold what was before a coordinator's last words.
  PROCTOR_TRY(JournalReader now, JournalReader::open(frozen.folder.journal()));
  PROCTOR_TRY(const RestoredState newest, now.load());
  const std::vector<std::string> behind = unknown_evidence(around, newest);
  if (!behind.empty()) return behind_error(frozen.folder, behind);
  return state;
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, RestoredState state) {
  return view_campaign(frozen.campaign, frozen.plan, frozen.removed, scheduler_settings(frozen),
                       std::move(state));
}

Result<CampaignView> view_of(const FrozenCampaign& frozen, JournalReader& journal) {
  PROCTOR_TRY(RestoredState state, load_whole(frozen, journal));
  return view_of(frozen, std::move(state));
}

}  // namespace proctor::cli
