#pragma once
// runs, reports and .proctor are a campaign's own folders: behind a link lies what somebody else
// changes, removes and reads, and a run whose evidence cannot be put in its place is done again and
// again.
#include <string>
#include <utility>
#include <vector>

#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

// Those of them that are something else, each with what it is and what to do.
std::vector<std::pair<fs::path, std::string>> not_own_folders(const StateFolder& folder);

// kInvalid, of the first of them: nothing of this campaign may begin.
Status check_own_folders(const StateFolder& folder);

}  // namespace proctor::cli
