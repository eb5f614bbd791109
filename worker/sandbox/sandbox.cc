#include "worker/sandbox/sandbox.h"

#include <signal.h>
#include <algorithm>
#include <iterator>
#include <utility>

#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/docker.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/oci.h"

namespace proctor {
void Hold::set(bool suspended) {
  const std::lock_guard lock(mutex_);
  if (suspended == on_) return;
  const Clock::time_point now = Clock::now();
  if (on_) stood_still_ += now - since_;
  since_ = now;
  on_ = suspended;
  if (!on_) off_.notify_all();
  for (const auto& changed : watches_) changed();
}

bool Hold::on() const {
  const std::lock_guard lock(mutex_);
  return on_;
}

Hold::Clock::time_point Hold::now() const {
  const std::lock_guard lock(mutex_);
  return (on_ ? since_ : Clock::now()) - stood_still_;
}

void Hold::wait_until_off(const std::stop_token& cancel) const {
  std::unique_lock lock(mutex_);
  off_.wait(lock, cancel, [this] { return !on_; });
}

Hold::Watch::Watch(const Hold& hold, std::function<void()> changed) : hold_(hold) {
  const std::lock_guard lock(hold_.mutex_);
  at_ = hold_.watches_.insert(hold_.watches_.end(), std::move(changed));
}

Hold::Watch::~Watch() {
  const std::lock_guard lock(hold_.mutex_);
  hold_.watches_.erase(at_);
}

void set_exit(ExecOutcome& out, int code) {
  constexpr int kDeaths[] = {SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE, SIGKILL,
                             SIGSEGV, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGSYS};
  const int signal = code - 128;
  const bool died = std::find(std::begin(kDeaths), std::end(kDeaths), signal) != std::end(kDeaths);
  out.end = died ? ExecOutcome::End::kSignalled : ExecOutcome::End::kExited;
  out.signal = died ? signal : 0;
  out.exit_code = code;
}

void set_ended(ExecOutcome& out, ExecOutcome::End why) {
  using End = ExecOutcome::End;
  out.end = why;
  if (why == End::kCpu) out.exit_code = 128 + SIGXCPU;
  if (why == End::kDisk || why == End::kMemory) out.exit_code = 128 + SIGKILL;
}

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
    return {{"attempts", "none"},
            {"cpu", "none"},
            {"memory", "none"},
            {"network", "none"},
            {"processes", "none"}};
  }
  Status clean_up(const std::set<std::string>&) override { return ok_status(); }
};
}  // namespace

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
