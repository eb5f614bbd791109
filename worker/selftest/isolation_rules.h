#pragma once
// What each kind of sandbox promises about a process in it, and which of that the host sees broken.
// Pure.  Source: docs/sandbox.md, "What is promised".
#include <map>
#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"
#include "worker/selftest/process_view.h"

namespace proctor {

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

// Likewise of the process that is the kernel of a sandbox in user space.
std::vector<std::string> broken_userspace(const ProcessView& kernel, const ProcessView& host,
                                          const SandboxSpec& spec);

}  // namespace proctor
