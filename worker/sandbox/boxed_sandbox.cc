#include "worker/sandbox/boxed_sandbox.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/base/text.h"
#include "worker/sandbox/exit_status.h"
#include "worker/sandbox/memory_use.h"
#include "worker/sandbox/suspension.h"
#include "worker/sandbox/writable_places.h"

namespace proctor {

using std::chrono::milliseconds;

namespace {

// By the group too: looking through all of /proc for them costs more than many a command.
std::vector<pid_t> pids_inside(const Cgroup& group, pid_t root) {
  if (auto counted = group.processes(); !counted.ok() || *counted)
    return counted.ok() ? **std::move(counted) : std::vector<pid_t>();  // asked again soon
  std::vector<pid_t> out;
  for (const TreeMember& member : tree_below(root)) out.push_back(member.pid);
  return out;
}

// By the group's count; without one the living processes and those they have buried.
std::optional<milliseconds> cpu_time_inside(const Cgroup& group, pid_t root) {
  const auto counted = group.cpu_time();
  if (!counted.ok() || *counted) return counted.ok() ? *counted : std::nullopt;
  return cpu_time_of_tree(root);
}

}  // namespace

Result<ExecOutcome> BoxedSandbox::run(const ExecSpec& exec, std::stop_token cancel) {
  if (exec.command.find('\0') != std::string::npos) {
    return Error{Errc::kInvalid, "command: a NUL byte"};
  }
  PROCTOR_TRY(BoundedFile out, BoundedFile::create(exec.stdout_file, exec.output_max));
  PROCTOR_TRY(BoundedFile err, BoundedFile::create(exec.stderr_file, exec.output_max));
  ExecOutcome outcome;
  if (spec_.hold) spec_.hold->wait_until_off(cancel);
  if (cancel.stop_requested()) {
    outcome.end = ExecOutcome::End::kCancelled;
    return outcome;
  }
  PROCTOR_CHECK_OK(open_writable_places(spec_));
  PROCTOR_TRY(const std::unique_ptr<Box> box, make_box(exec));
  Cgroup& group = box->group;
  Suspension suspension(group);
  box->launch.timeout = exec.timeout;
  box->launch.begun = exec.begun;
  if (spec_.shared) {
    box->launch.network = std::dynamic_pointer_cast<const BoxNetwork>(spec_.shared);
    if (!box->launch.network || spec_.network)
      return Error{Errc::kInvalid, "sandbox: a shared network of another engine, or two networks"};
  }
  box->launch.hold = spec_.hold;
  // A process's own limit on CPU time is set by the runtime; the sum is watched, by threads.
  std::atomic<pid_t> root{0};
  LimitWatch::Host host{[&] { return cpu_time_inside(group, root); },
                        [&] { return pids_inside(group, root); }};
  if (box->watch_memory) host.memory = [&] { return memory_of(pids_inside(group, root)); };
  if (box->watch_sockets) host.sockets = SocketUse::Counts::kAll;
  LimitWatch watch(spec_, std::move(host));
  box->launch.suspend = [&](pid_t runtime, bool stand_still) {
    stand_still ? suspension.suspend(runtime) : suspension.resume(runtime);
    watch.pause(stand_still);
  };
  if (LimitWatch::needed(
          spec_, box->watch_memory ? LimitWatch::Memory::kWatched : LimitWatch::Memory::kKernel)) {
    box->launch.over_limit = [&watch, &root](pid_t runtime) {
      root = runtime;
      return watch.look(std::chrono::steady_clock::now());
    };
    box->launch.over_limit_wakes = [&watch] { return watch.wakes(); };
  }
  auto end = run_box(box->launch, out, err, cancel);
  group.empty();
  if (!end.ok()) return std::move(end).error();
  PROCTOR_CHECK_OK(out.status());
  PROCTOR_CHECK_OK(err.status());
  outcome.wall = end->wall;
  // By the group also what nobody inside has waited for.
  PROCTOR_TRY(const std::optional<milliseconds> counted, group.cpu_time());
  outcome.cpu = box->cpu_by_group ? counted.value_or(end->cpu)
                                  : std::max(end->cpu, counted.value_or(milliseconds(0)));
  PROCTOR_TRY(outcome.memory_peak, group.memory_peak());
  outcome.memory_peak -= std::min(outcome.memory_peak, box->runtime_memory);
  outcome.stdout_bytes = out.total();
  outcome.stderr_bytes = err.total();
  PROCTOR_CHECK_OK(conclude(*box, *end, err.head(), outcome));
  return outcome;
}

Status BoxedSandbox::conclude(const Box& box, const BoxEnd& end, const std::string& said,
                              ExecOutcome& out) const {
  using End = ExecOutcome::End;
  switch (end.cause) {
    case BoxEnd::Cause::kTimedOut:
      out.end = End::kTimedOut;
      return ok_status();
    case BoxEnd::Cause::kCancelled:
      out.end = End::kCancelled;
      return ok_status();
    case BoxEnd::Cause::kOverDisk:
      out.end = End::kDisk;
      out.exit_code = 128 + SIGKILL;
      return ok_status();
    case BoxEnd::Cause::kOverMemory:
      out.end = End::kMemory;
      out.exit_code = 128 + SIGKILL;
      return ok_status();
    case BoxEnd::Cause::kOverCpu:
      out.end = End::kCpu;
      out.exit_code = 128 + SIGXCPU;
      return ok_status();
    case BoxEnd::Cause::kItself:
      break;
  }
  if (end.exec_error && spec_.program) {  // as a shell and the Docker Engine's init say it
    set_exit(out, *end.exec_error == ENOENT ? 127 : 126);
    return ok_status();
  }
  if (end.exec_error) {
    return Error{Errc::kInvalid, "image " + printable(spec_.image) +
                                     ": /bin/sh does not run: " + std::strerror(*end.exec_error)};
  }
  set_exit(out, end.exit_code.value_or(128 + SIGKILL));
  // A command that lives with the loss of a child has not failed for memory.
  if (out.exit_code != 0) {
    PROCTOR_TRY(const std::uint64_t kills, box.group.oom_kills());
    if (0 < kills) {
      out.end = End::kMemory;
      return ok_status();
    }
  }
  // By the kernel's own count of one process, before anybody looked.
  if (out.end == End::kSignalled && (out.signal == SIGXCPU || out.signal == SIGKILL) &&
      0 < spec_.cpu.count() && spec_.cpu <= out.cpu) {
    out.end = End::kCpu;
    return ok_status();
  }
  if (!end.exit_code)
    return Error{Errc::kUnavailable,
                 box.complaint(said) + " (exit code " + std::to_string(end.runtime_exit) + ")"};
  return ok_status();
}

}  // namespace proctor
