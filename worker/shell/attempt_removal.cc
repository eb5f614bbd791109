// AttemptRun: what a run's commands left is removed, by a process of its own where it is much
// (worker/workspace/removal.h), and what that took is the run's (decision 94).
#include "common/base/log.h"
#include "common/trace/evidence.h"
#include "worker/shell/attempt_run.h"

namespace proctor {

void AttemptRun::leave_workspace(MeterPhase phase) {
  if (!workspace_) return;
  count_removal(phase, workspace_->close());
  workspace_.reset();
}

// Homes, results, copies for containers: all but the evidence, and what a later life of the worker
// would want if this one is killed before the result is on disk.  Later than this nothing can be
// counted: the report names the usage.
void AttemptRun::leave_rooms() {
  std::vector<fs::path> rooms;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir_, ec))
    if (entry.path() != run_dir() && entry.path() != kept_made() && entry.path() != kept_home() &&
        entry.symlink_status(ec).type() == fs::file_type::directory)
      rooms.push_back(entry.path());
  const RemovalCost took = cost_of([&](RemovalCost& cost) {
    for (const fs::path& room : rooms)
      if (const Status gone = remove_left(room, tools_.remover, cost); !gone.ok())
        log::warn("attempt " + to_string(input_.assignment.attempt) + ": " + gone.error().detail);
  });
  count_removal(MeterPhase::kAcceptance, took);
}

Status AttemptRun::remove_counted(const fs::path& dir) {
  Status removed = ok_status();
  const RemovalCost took =
      cost_of([&](RemovalCost& cost) { removed = remove_left(dir, tools_.remover, cost); });
  count_removal(MeterPhase::kAcceptance, took);
  return removed;
}

void AttemptRun::count_removal(MeterPhase phase, const RemovalCost& took) {
  if (!took.apart && took.wall < kCountedWork) return;
  meter_.executed(phase, {took.wall, took.cpu, took.memory_peak});
  Json payload = {{"wall_ms", took.wall.count()}, {"cpu_ms", took.cpu.count()}};
  if (took.apart) payload["memory_peak"] = took.memory_peak;
  note("removed", Actor::kHarness, payload);
}

}  // namespace proctor
