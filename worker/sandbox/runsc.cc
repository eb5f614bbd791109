#include "worker/sandbox/runsc.h"

#include "worker/sandbox/image_rules.h"

namespace proctor {
namespace {

// Threads of theirs; and for each process inside one that runs its code and one that serves it.
constexpr std::uint64_t kThreads = 512;
constexpr std::uint64_t kThreadsPerProcess = 4;

}  // namespace

std::vector<std::string> runsc_argv(const SandboxSpec& spec, const RunscPlaces& places) {
  // A network of its own is one of the sentry's making, with lo alone.  Where others share it, or
  // it is the host's, the host's kernel has the sockets.
  const bool outside = spec.network || spec.shared;
  return {places.runtime.string(), "--root=" + places.state.string(),
          "--log=" + (places.bundle / "log").string(),
          "--platform=ptrace",  // works also where the host is a virtual machine itself
          "--ignore-cgroups",   // we have made them, and it is in them
          std::string("--network=") + (outside ? "host" : "none"),
          // Sockets of the folders that are shown can be spoken to, as in every other kind.
          "--host-uds=open", "run", "--bundle=" + places.bundle.string(), places.name};
}

CgroupLimits runsc_limits(const SandboxSpec& spec) {
  CgroupLimits out;
  if (0 < spec.memory_bytes) out.memory_bytes = spec.memory_bytes + kSentryMemory;
  if (0 < spec.processes)
    out.processes =
        static_cast<std::uint64_t>(processes_limit(spec)) * kThreadsPerProcess + kThreads;
  out.cpus = spec.cpus;
  out.cpu_usage = true;
  return out;
}

}  // namespace proctor
