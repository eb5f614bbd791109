#pragma once
// From a campaign's files to its projection (coordinator/aggregate/projection.h).  Pure: nothing is
// read or written here.
#include "coordinator/aggregate/projection.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// Envelopes as registered: raises are deviations, and a projection is older than they are.
// `registration`: none while the campaign is not frozen.
ProjectionInput projection_input(const Campaign& campaign, const Plan& plan,
                                 const Registration* registration);

}  // namespace proctor::cli
