#pragma once
// What `proctor selfcheck` and `proctor screen` found against the tasks of a campaign, for whoever
// is about to spend money on them.
#include <map>
#include <string>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor::cli {

// By task, of those whose contract and image are still what was judged: "flaky: 2 of 60 ...",
// "undecided: ...", "unsound: ...".  Files that are not there, or that cannot be read, say nothing.
std::map<std::string, std::string> distrusted_tasks(const Campaign& campaign);
// The same as notes for people, a sentence each; empty: nothing is known against any task.
std::vector<std::string> trust_notes(const std::map<std::string, std::string>& distrusted);

}  // namespace proctor::cli
