#pragma once
// The runs of `proctor selfcheck`, as a campaign of its own in .proctor/selfcheck: every variant of
// a contract but noop is a contract whose reference is that variant's patch, so that nothing but
// the workers' ordinary acceptance judges it.
#include <optional>
#include <string>
#include <vector>

#include "common/pilot/selfcheck.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

struct TaskVariants {
  const Contract* contract = nullptr;  // of the campaign
  std::vector<Variant> variants;
};

StateFolder selfcheck_folder(const fs::path& campaign);
// No methods but noop and reference; the campaign's money and plan of analysis are not its own.
// `usd`: what all of it may cost; nothing: no limit.
Campaign selfcheck_campaign(const Campaign& campaign, const std::vector<TaskVariants>& tasks,
                            const SelfcheckSettings& settings, std::optional<MicroUsd> usd);
// Frozen, with what is no variant's taken out of its plan.
Result<FrozenCampaign> selfcheck_frozen(Campaign derived, const std::vector<TaskVariants>& tasks,
                                        StateFolder folder);
// What the runs of one task came to, by variant and repeat; checks as their reports have them.
std::vector<VariantRuns> runs_of(const FrozenCampaign& frozen, const CampaignReport& report,
                                 const TaskVariants& task);

}  // namespace proctor::cli
