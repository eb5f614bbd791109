#include "worker/sandbox/null.h"

#include "worker/sandbox/bounded_file.h"

namespace proctor {
namespace {

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

std::unique_ptr<SandboxEngine> open_null_engine() {
  return std::make_unique<NullEngine>();
}

}  // namespace proctor
