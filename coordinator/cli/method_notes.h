#pragma once
// What can be seen of methods' programs before money is spent on them: a script that its
// interpreter cannot be for, a file that its command names and its method does not bring.  Each
// would be a failure of the agent in every run.  Reads what the campaign holds and nothing else.
#include <string>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor::cli {

// One sentence each; none of them is an error: a shell may be meant, and a folder be mounted there.
std::vector<std::string> method_notes(const Campaign& campaign);

}  // namespace proctor::cli
