#include "worker/sandbox/sandbox.h"

#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/docker.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/null.h"
#include "worker/sandbox/oci.h"

namespace proctor {

std::string_view to_string(SandboxKind k) {
  switch (k) {
    case SandboxKind::kBubblewrap:
      return "bubblewrap";
    case SandboxKind::kDocker:
      return "docker";
    case SandboxKind::kOci:
      return "oci";
    case SandboxKind::kNull:
      return "null";
  }
  return "?";
}

Result<std::unique_ptr<Sandbox>> SandboxEngine::adopt(const SandboxSpec&, const LeftCommand&) {
  return Error{Errc::kInvalid, "sandbox " + std::string(to_string(kind())) +
                                   ": its commands end with their worker"};
}

Result<std::shared_ptr<SharedNetwork>> SandboxEngine::open_network(const std::string&,
                                                                   const std::string&) {
  return Error{Errc::kInvalid,
               "sandbox " + std::string(to_string(kind())) + ": it has no networks to share"};
}

Result<std::unique_ptr<SandboxEngine>> open_sandbox_engine(SandboxKind kind,
                                                           const SandboxOptions& options) {
  (void)host_lack_before();
  switch (kind) {
    case SandboxKind::kBubblewrap:
      return open_bubblewrap_engine(options);
    case SandboxKind::kDocker:
      return open_docker_engine(options);
    case SandboxKind::kOci:
      return open_oci_engine(options);
    case SandboxKind::kNull:
      return open_null_engine();
  }
  return Error{Errc::kInvalid, "sandbox: no such kind"};
}

}  // namespace proctor
