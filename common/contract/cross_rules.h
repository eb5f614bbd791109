#pragma once
// Rules of the envelopes that lie across the tree (budget.methods, budget.strata): they name what
// the campaign has, fit into the global one, hold one run at least, and no run needs room in more
// envelopes than one reservation holds.  Pure.  Internal to this room.
#include "common/contract/campaign.h"
#include "common/contract/document.h"
#include "common/contract/told.h"

namespace proctor {

void check_cross_envelopes(const Campaign& campaign, const Told& told, Diagnostics& out);

}  // namespace proctor
