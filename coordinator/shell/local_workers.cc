#include "coordinator/shell/local_workers.h"

#include <signal.h>

namespace proctor {
namespace {

// The worker of the same build, else the one on PATH.
std::string worker_program() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  if (!ec) {
    const fs::path beside = self.parent_path() / "proctor-worker";
    if (fs::exists(beside, ec)) return beside.string();
  }
  return "proctor-worker";
}

}  // namespace

Result<LocalWorkers> LocalWorkers::start(const LocalWorkersSpec& spec) {
  LocalWorkers out;
  PROCTOR_CHECK_OK(make_dirs(spec.folder.logs()));
  for (std::uint32_t i = 1; i <= spec.workers; ++i) {
    const std::string name = "local-" + std::to_string(i);
    CommandSpec command;
    command.argv = {worker_program(),
                    "--connect",
                    spec.endpoint,
                    "--name",
                    name,
                    "--slots",
                    std::to_string(spec.slots),
                    "--root",
                    (spec.folder.state() / "workers").string(),
                    "--give-up-after",
                    "600"};
    command.argv.insert(command.argv.end(), spec.extra.begin(), spec.extra.end());
    PROCTOR_TRY(Child child,
                Child::start(command, spec.folder.worker_log(name), Child::Lifetime::kIndependent));
    out.children_.push_back(std::move(child));
  }
  return out;
}

void LocalWorkers::stop() {
  constexpr std::chrono::milliseconds kLeave(5'000), kGrace(10'000);
  for (Child& c : children_) {
    if (c.wait(kLeave)) continue;
    c.signal(SIGINT);
    c.stop(kGrace);
  }
  children_.clear();
}

}  // namespace proctor
