#pragma once
// What this host's /proc says of one process: whether it is held apart from the host is seen there,
// by somebody whom it cannot deceive.  kNotFound: it is gone; kUnavailable: it may not be looked
// at. Source: proc(5), namespaces(7).
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct MountView {
  std::string device;  // "254:0": which file system, whatever its name
  std::string root;    // the folder of that file system which is mounted
  std::string at, type;
  bool writable = false;
};
// The lines of a mountinfo in their order; what does not parse is left out.  Pure.
std::vector<MountView> parse_mountinfo(std::string_view text);

struct ProcessView {
  std::map<std::string, std::string> namespaces;  // "pid" -> "pid:[4026531836]"
  std::map<std::string, std::string> status;      // "Seccomp" -> "2", as /proc/PID/status has them
  std::vector<MountView> mounts;
};
Result<ProcessView> look_at_process(pid_t pid);

// Files of /proc have no size.  Empty: it is gone, or not to be read.
std::string read_proc_file(const fs::path& path);

}  // namespace proctor
