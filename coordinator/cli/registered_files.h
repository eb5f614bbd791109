#pragma once
// The files that a campaign was registered from, as they were at its freeze: in
// .proctor/registered, under the names they have in the campaign's folder; the plan is drawn again.
// Whoever reads evidence goes by them when somebody has edited the campaign since, and can say
// which file that was.  They are believed no more than any others: what is loaded from them must
// make the registration again.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/campaign.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

// Keeps them, unless they are kept already.  Requires: the campaign is as it is registered.
Status keep_registered(const Campaign& campaign);

// The campaign as it was, at home in its own folder.  Nothing: none were kept, by an earlier
// version, or they cannot be read any more.
std::optional<Campaign> load_kept(const StateFolder& state);

// The files that are not as they were kept, each with what became of it: "agent.sh (changed)".
std::vector<std::string> changed_files(const StateFolder& state);

// Whether what is kept is what the freeze kept, and nothing else: a file beside it would be
// believed by whoever looks there what was registered.  `campaign`: as it is registered.  Each with
// what is wrong with it; nothing where none were kept.
std::vector<std::pair<std::string, std::string>> wrong_kept(const Campaign& campaign);

}  // namespace proctor::cli
