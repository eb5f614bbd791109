#pragma once
// `proctor verify`, the part about what was kept of the registration: a file that was changed,
// added or taken away there would be believed by whoever looks what was registered.
#include <optional>
#include <string>

#include "common/contract/campaign.h"
#include "common/plan/registration.h"
#include "coordinator/cli/verify_folder.h"

namespace proctor::cli {

// `campaign`: as it is registered.  `sealed`: the digest of the list of what was kept, as the
// journal has it; nothing: an earlier version made no list, and perhaps kept nothing, which is no
// problem.
void verify_kept(const Campaign& campaign, const Registration& registration,
                 const std::optional<std::string>& sealed, const FolderProblem& problem);

}  // namespace proctor::cli
