#pragma once
// Isolation seen from outside: a process as this host's /proc has it, and which promises that
// breaks.
#include <sys/types.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// A process as this host's /proc has it: whether it is held apart from the host is seen there, by
// somebody whom it cannot deceive.  kNotFound: it is gone; kUnavailable: it may not be looked at.
// Source: proc(5), namespaces(7).

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

// Promises of each kind of sandbox about a process in it, and which of them the host sees broken.
// Pure.  Source: docs/sandbox.md, "What is promised".

struct IsolationRules {
  std::vector<std::string> namespaces;  // that are its own
  bool host_root = false;               // may it be root of the host, without any right of his?
  std::vector<std::string> writable;    // places inside where it may write on a disk of the host
};
// `limits`: SandboxEngine::enforcement().
IsolationRules isolation_rules(SandboxKind kind, const std::map<std::string, std::string>& limits,
                               const SandboxSpec& spec);

// A folder of the host, by the file system that it lies on.
struct HostPlace {
  std::string path, device, inside;  // "/etc" is "/etc" of "254:0"
};
// `path`: absolute, no link in it.
HostPlace host_place(const std::vector<MountView>& mounts, const std::string& path);

// One text for each promise that does not hold: "the pid namespace is the host's".
// `hidden`: what nothing inside may show, whole or from above.
std::vector<std::string> broken_promises(const ProcessView& inside, const ProcessView& host,
                                         const IsolationRules& rules,
                                         const std::vector<HostPlace>& hidden);

// The same of the process that is the kernel of a sandbox in user space.
std::vector<std::string> broken_userspace(const ProcessView& kernel, const ProcessView& host,
                                          const SandboxSpec& spec);
}  // namespace proctor
