#pragma once
// runsc: gVisor as the runtime of OCI containers.  The system calls of what runs inside are served
// by a kernel in user space (the "sentry"), and files by a second process (the "gofer"); the host's
// kernel is asked by those two alone, behind a seccomp filter of theirs.
// Pure.  Source: runsc flags(1) of 20221219; gvisor.dev/docs/architecture_guide/security.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// Where everything of one container lies.
struct RunscPlaces {
  fs::path runtime, bundle, state;
  std::string name;
};
// What starts the container.  It is in its control groups, mounts and network already, and finds
// the pipe for the status as its standard input: this version passes no other descriptor on.
std::vector<std::string> runsc_argv(const SandboxSpec& spec, const RunscPlaces& places);

// What the sentry, the gofer and runsc hold in the groups beside the command (they were seen to
// need 19 MiB for an empty one).
inline constexpr std::uint64_t kSentryMemory = std::uint64_t{32} << 20;

// Of the host's kernel: what the command may have, and beside it what serves it.
CgroupLimits runsc_limits(const SandboxSpec& spec);

}  // namespace proctor
