#pragma once
// What a folder's processes leave on the machine: everything that names the folder is ours, and
// nothing that another campaign on the same machine runs.
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/files.h"

namespace proctor::testing {

// Processes whose command line names `folder`, and sandboxed_of().
std::vector<pid_t> processes_of(const fs::path& folder);
// Those that live in a mount namespace of their own in which something of `folder` is mounted, and
// that we started, or that were left by those we started.
std::vector<pid_t> sandboxed_of(const fs::path& folder);
// The workers whose command line names it.
std::vector<pid_t> workers_of(const fs::path& folder);

// Programs that live and were given an environment with each of these words in it ("NAME=VALUE", or
// "NAME=" of whatever value); what they started has it from them, and is not counted.
std::size_t programs_with(const std::vector<std::string>& words);

// One line for each process, mount and listening socket that names `folder`, and each control group
// of a worker whose root is `worker_root`.  Empty: nothing is left over.
std::string leftovers_of(const fs::path& folder, const fs::path& worker_root);

// From now on leftovers_of() asks this too, for what workers whose owner labels end with `mark` (of
// their root) have left elsewhere; one line for each.  A case that uses that place
// calls it before its scene ends.
void look_also(std::function<std::string(const std::string& mark)> elsewhere);

// Kills and unmounts them, whatever happened: for the end of a test that failed.
void clear_away(const fs::path& folder);

}  // namespace proctor::testing
