#pragma once
// Where control groups are mounted and which group this process is in, read from the text of
// /proc/self/mountinfo and /proc/self/cgroup.  Pure: text in, layout out; the texts come from the
// kernel but are parsed as strangers' (a line that does not parse is left out, never guessed).
// Source: cgroups(7), proc(5), Documentation/admin-guide/cgroup-v2.rst.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace proctor {

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

}  // namespace proctor
