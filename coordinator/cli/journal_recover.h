#pragma once
// proctor journal recover: a new journal from what the damaged one and runs/ still say.
#include <string>

#include "common/base/result.h"

namespace proctor::cli {

// Of a journal with nothing in it beside which nothing says otherwise: what that means, and what to
// type.
std::string nothing_granted(const std::string& folder);

// The exit code; says on standard output what could be saved and what could not.
// `behind`: the journal's end is missing, whatever it looks like.
Result<int> recover_journal(const std::string& folder, bool behind);

}  // namespace proctor::cli
