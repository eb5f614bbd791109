#include "worker/sandbox/sandbox.h"

#include "worker/sandbox/bounded_file.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/docker.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/oci.h"

namespace proctor {
namespace {

// The null sandbox runs nothing and says it exited with 0: for benchmarks of everything else, and
// never chosen by itself.  It fails only when the output files cannot be made.
class NullSandbox final : public Sandbox {
 public:
  Result<ExecOutcome> run(const ExecSpec& spec, std::stop_token cancel) override {
    PROCTOR_CHECK_OK(BoundedFile::create(spec.stdout_file, spec.output_max));
    PROCTOR_CHECK_OK(BoundedFile::create(spec.stderr_file, spec.output_max));
    ExecOutcome out;
    if (cancel.stop_requested()) out.end = ExecOutcome::End::kCancelled;
    return out;
  }
};

class NullEngine final : public SandboxEngine {
 public:
  SandboxKind kind() const override { return SandboxKind::kNull; }
  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec&) override {
    return std::unique_ptr<Sandbox>(std::make_unique<NullSandbox>());
  }
  std::map<std::string, std::string> enforcement() const override {
    return {{"cpu", "none"}, {"memory", "none"}, {"network", "none"}, {"processes", "none"}};
  }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }
};

}  // namespace

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
      return std::unique_ptr<SandboxEngine>(std::make_unique<NullEngine>());
  }
  return Error{Errc::kInvalid, "sandbox: no such kind"};
}

}  // namespace proctor
