#pragma once
// Control groups as files: where they are mounted, and what lies in the folder of one.
#include <sys/types.h>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
// Where control groups are mounted and which group this process is in, read from the text of
// /proc/self/mountinfo and /proc/self/cgroup.  Pure: text in, layout out; the texts come from the
// kernel but are parsed as strangers' (a line that does not parse is left out, never guessed).
// Source: cgroups(7), proc(5), Documentation/admin-guide/cgroup-v2.rst.

struct CgroupPlace {
  std::string mount;  // "/sys/fs/cgroup/memory"
  std::string own;    // our group below it: "" (the root) or "/a/b"
  friend bool operator==(const CgroupPlace&, const CgroupPlace&) = default;
};

struct CgroupLayout {
  // Controllers on version 1 hierarchies: "memory", "pids", "cpu", "cpuacct", "freezer".
  std::map<std::string, CgroupPlace> v1;
  // The version 2 hierarchy; mount empty: there is none.
  CgroupPlace v2;
  // Every hierarchy's mount, also of those that limit nothing: a runtime makes its group in each.
  std::vector<std::string> mounts;
};

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view self_cgroup);

// One path component out of any text: [A-Za-z0-9_-] kept, "." kept except in front, the rest "_".
std::string cgroup_component(std::string_view text);

// The files of one control group's folder: read, written, emptied of processes, removed.  Every
// call is about a path and keeps nothing, so any thread may.
// A file that is not there is empty, one that cannot be written is false: the callers decide what
// that means.  One that is there and cannot be read, for this host's want of descriptors or memory,
// is kUnavailable: taken for empty it would be a count of nothing, and a command's death by its
// limit its own.

bool write_control(const fs::path& file, std::string_view text);
// To the end: these files have no size.
Result<std::string> read_control(const fs::path& file);
// For what is asked once, of the host, when a worker starts: also a file that cannot be read is
// empty.
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
