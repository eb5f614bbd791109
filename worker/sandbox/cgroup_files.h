#pragma once
// The files of one control group's folder: read, written, emptied of processes, removed.  Shared by
// cgroup.cc and cgroup_pool.cc; every call is about a path and keeps nothing, so any thread may.
// What is not there is empty, what cannot be written is false: the callers decide what that means.
// What is there and cannot be read, for this host's want of descriptors or memory, is
// kUnavailable: taken for empty it would be a count of nothing, and a command's death by its limit
// its own.
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

bool write_control(const fs::path& file, std::string_view text);
// To the end: these files have no size.
Result<std::string> read_control(const fs::path& file);
// For what is asked once, of the host, when a worker starts: also what cannot be read is empty.
std::string control_text(const fs::path& file);
std::uint64_t control_number(std::string_view text);
Result<std::uint64_t> read_control_number(const fs::path& file);
// The value of "key value\n".
std::uint64_t keyed_control_number(std::string_view text, std::string_view key);
// True where it is there already.
bool make_group_dir(const fs::path& dir);
Result<std::vector<pid_t>> members_of_group(const fs::path& dir);
// Sends SIGKILL to all that is in it now, and to nobody else.
void kill_group(const fs::path& dir);
// Until nobody is in it, for five seconds.  True: nobody is.
bool kill_members(const fs::path& dir);
// A dead process leaves its group a moment after its parent has seen it die: waits for that.
bool remove_group(const fs::path& dir);

}  // namespace proctor
