#pragma once
// ServedCampaigns: which campaigns a worker of this home has served, and where, so that its next
// life finds what it has of each.
//   HOME/campaigns   "CAMPAIGN ADDRESS\tWHO\n", the last one served last
// Builds before it wrote no WHO, and before that one campaign, in HOME/last-campaign; both are
// still read.  Blocking.
//
// A campaign's id is only what its coordinator says.  So that nobody gets another's results or
// place by saying it first, what a worker keeps of a campaign belongs to the coordinator's key too:
// whoever says the same id with another key is served beside it, under a name of its own here.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"

namespace proctor {

struct ServedCampaign {
  std::string campaign, address;
  std::string who{};  // who_of() its coordinator's key; empty: an earlier build did not say
  friend bool operator==(const ServedCampaign&, const ServedCampaign&) = default;
};

// The oldest first; empty: none that is known.
std::vector<ServedCampaign> served_campaigns(const fs::path& home);
// The newest now.  One that says many ids forgets its own, and no other's.
void take(std::vector<ServedCampaign>& all, const ServedCampaign& served);
void remember_campaign(const fs::path& home, const ServedCampaign& served);

// A coordinator, by its public key (Z85); all that have none are one.
std::string who_of(std::string_view server_key);
// The id that its coordinator says, of a campaign as it is kept here.
std::string_view id_of(std::string_view kept);
// What a coordinator's word may not have as an id, because it is a name of ours.
bool is_kept_apart(std::string_view name);
// Under which name a campaign is kept that `who` calls `id`.  Nothing: it has no room for one.
std::optional<std::string> kept_name(const std::vector<ServedCampaign>& served,
                                     const std::string& id, const std::string& who);

}  // namespace proctor
