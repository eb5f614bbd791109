#pragma once
// A campaign folder as the commands need it: loaded, validated, with its plan and registration.
#include <array>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/campaign.h"
#include "common/plan/plan.h"
#include "common/plan/registration.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
// runs, reports and .proctor are a campaign's own folders: behind a link lies what somebody else
// changes, removes and reads, and a run whose evidence cannot be put in its place is done again and
// again.
std::array<fs::path, 3> own_folders(const StateFolder& folder);

// Those of these that are something else, each with what it is and what to do.
std::vector<std::pair<fs::path, std::string>> not_own_folders(std::span<const fs::path> folders);

// kInvalid, of the first of them: nothing may begin that would lie in it.
Status check_own_folders(std::span<const fs::path> folders);

enum class Outside { kSkip, kCheck };  // repositories, commits, images, reference patches

// There is none in that folder; perhaps in one beside it whose name is nearly the same.
Error no_campaign(const std::string& folder);

// Prints every error it finds, to standard error.  kInvalid with a count when there are any, and
// where what it makes would not lie in folders of its own (check_own_folders).
Result<Campaign> load_checked(const fs::path& folder, Outside outside);

struct FrozenCampaign {
  Campaign campaign;
  Plan plan;
  Registration registration;
  std::string id;
  StateFolder folder;
  std::vector<RunId> removed;  // runs of tasks taken out after the freeze
};

// The sentence about a run that a replay or regrade has in its plan and did not judge: where the
// original is; empty: it is no such run.
std::string not_judged_again(const FrozenCampaign& frozen, RunId run);

// Nothing: it is not registered.
Result<std::optional<Registration>> read_registration(const fs::path& folder);
// Draws and writes the plan.  The digest of the file's bytes.
Result<Digest> write_plan(const Campaign& campaign);
// kConflict, with what to type: its journal knows of lives, and there is no registration, so that
// another one would be another campaign's.
Status check_never_began(const StateFolder& state);
// Writes registration.json for the plan that is there.  kConflict: it is registered already,
// otherwise; or as check_never_began().
Result<Registration> freeze(const Campaign& campaign);

// Everything, checked against the world too, and proof that nothing differs from what was
// registered.  Without a registration it draws and freezes first and says so (`announce`).
// kConflict lists what differs.
Result<FrozenCampaign> load_frozen(const fs::path& folder,
                                   const std::function<void(const std::string&)>& announce);
// The same for those who only look: nothing outside is asked, and a campaign that is not registered
// is kNotFound and stays so.  Where a file has changed since the freeze it is the campaign as it
// was registered that is looked at, and one line on standard error names the file.
Result<FrozenCampaign> load_registered(const fs::path& folder);
// The files that are not as they were registered, each with what became of it: "agent.sh
// (changed)"; behind them `came`.
std::vector<std::string> changed_since(const StateFolder& state, const Registration& registered,
                                       const std::vector<std::string>& came = {});
// For what the next run has to stand by: kConflict names the files that changed.
Result<FrozenCampaign> load_unchanged(const fs::path& folder);
}  // namespace proctor::cli
