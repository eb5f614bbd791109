#pragma once
// A lock file that says who has the lock.  It ends with its holder, however that ends; the file
// may stay.  Adapter (file system); any thread.
#include <chrono>
#include <optional>
#include <string>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

// Of this machine; "unknown host" where it has none.
std::string host_name();
// What this process writes into a lock: "process 17 on build7 since 2026-11-26T20:00:00Z".
std::string own_name();

// Makes the file where there is none and writes the line `owner` into it.  kConflict: somebody has
// had the lock for all of `patience`; the detail is that one's line.
Result<UniqueFd> take_owner_lock(const fs::path& file, const std::string& owner,
                                 std::chrono::milliseconds patience);
// The line of whoever has had the lock for all of `patience`, if anyone.
std::optional<std::string> lock_owner(const fs::path& file, std::chrono::milliseconds patience);

}  // namespace proctor
