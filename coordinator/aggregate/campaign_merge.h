#pragma once
// Campaigns of one configuration class as one table: more replicates of the same tasks under the
// same methods and limits (R127; the command is `proctor merge`, docs/analysis.md).  Pure.
#include <string>
#include <vector>

#include "common/plan/registration.h"
#include "coordinator/aggregate/report.h"

namespace proctor {

struct MergedCampaign {
  const Registration& registration;
  const ReportInput& runs;
};

// Why they may not be pooled, a sentence each; empty: they may.  What is equal in all: strata,
// contracts of common tasks, methods of one name, caps, what a run may spend, prices, the plan of
// analysis; no attempt is in two of them; and each may_be_compared().
std::vector<std::string> why_not_pooled(const std::vector<MergedCampaign>& campaigns);

// Their runs as those of one campaign: of tasks and methods that all of them have, in the order of
// the campaigns, replicates numbered on.  Its deviations say what was left out, and that no plan
// had registered the pool.  Requires: why_not_pooled() is empty, at least one campaign.
ReportInput pooled(const std::vector<MergedCampaign>& campaigns);

}  // namespace proctor
