#pragma once
// What every sandbox has in common whose runtime is a process of ours (bubblewrap, OCI): bounded
// output files, a control group for each command, limits, suspension, and how the end of the
// process becomes an outcome.  One object, one thread.
// Fails with kUnavailable (the runtime did not start the command), kInvalid (nothing in the image
// can), and what the box's maker fails with.
#include <memory>
#include <string>

#include "worker/sandbox/boxed_process.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// One command about to run.  Removes, at its end, what was made for it.
struct Box {
  Box() = default;
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;
  virtual ~Box() = default;
  // Why the runtime failed before the command ran; `said` is the beginning of its stderr.
  virtual std::string complaint(const std::string& said) const = 0;
  Cgroup group;
  BoxLaunch launch;
  // The runtime is dear itself: what the command used is the group's count, not the process's.
  bool cpu_by_group = false;
  // Of what its groups hold: the runtime's own, which is not the command's.
  std::uint64_t runtime_memory = 0;
  // No control group keeps the limit on memory: what all processes hold together is looked at.
  bool watch_memory = false;
  // Nor what its sockets hold.
  bool watch_sockets = false;
};

class BoxedSandbox : public Sandbox {
 public:
  explicit BoxedSandbox(SandboxSpec spec) : spec_(std::move(spec)) {}
  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) final;

 protected:
  virtual Result<std::unique_ptr<Box>> make_box(const ExecSpec& exec) = 0;
  const SandboxSpec& spec() const { return spec_; }

 private:
  Status conclude(const Box& box, const BoxEnd& end, const std::string& said,
                  ExecOutcome& out) const;
  SandboxSpec spec_;
};

}  // namespace proctor
