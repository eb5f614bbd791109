#pragma once
// What `proctor selfcheck` says to people: a line for each task, what to do about those that are
// not good, and a summary.  Pure.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/pilot/selfcheck.h"

namespace proctor::cli {

// `campaign` as it was typed; `evidence`: where the runs are.
std::string selfcheck_text(const std::vector<SelfcheckTask>& tasks, const std::string& campaign,
                           const fs::path& evidence);

}  // namespace proctor::cli
