#pragma once
// What an agent changed, read back from the campaign's repository and the patch that is evidence;
// nothing of the agent's is followed, run or unpacked.  Private to the program.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cvdp/dataset/agent_patch.h"

namespace proctor::cli {

// Of plain files; links are left out.  `branch`: the problem's, as import made it.  kInvalid: the
// patch is not one of that commit.
Result<std::vector<cvdp::AgentChange>> changes_of(const fs::path& repository,
                                                  const std::string& branch,
                                                  const std::string& patch);

}  // namespace proctor::cli
