#pragma once
// What a status says of a campaign by its scheduler alone: counts, money, what was told, what is
// broken.  Of one that a coordinator runs, and of one that nobody does: of that the journal's facts
// say all of it (campaign_view.h), and its last coordinator's own word only what is in no journal.
#include <functional>
#include <string>

#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/status.h"

namespace proctor {

using RunNames = std::function<std::string(RunId)>;

// All of `s` that the scheduler knows but for who is there, which its caller knows better.
// `s.unit` is what amounts are counted in.
void tell_campaign(StatusSnapshot& s, const Scheduler& core, const RunNames& name);

// How a campaign that nobody runs stands.
enum class Rest : std::uint8_t {
  kComplete,     // no run is left but those that wait for money or a person
  kStopped,      // its last coordinator ended in order, and there are runs for the next one
  kInterrupted,  // its last coordinator did not: what it had out is open
};
struct RestingStatus {
  StatusSnapshot status;  // no process runs it: `pid` is 0
  Rest rest = Rest::kStopped;
};
// `view` has begun.  `last`: what its last coordinator wrote, where that can be read.
RestingStatus resting_status(const CampaignView& view, const RunNames& name,
                             const StatusSnapshot* last, WallTime now);

}  // namespace proctor
