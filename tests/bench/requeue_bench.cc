// loss.requeue_closed_s: a worker that `proctor run` started is killed with SIGKILL while it runs
// two sandboxes; from there until both runs are asked for again, as new attempts.  The worker
// comes back in another life, as under any supervisor, and says what it has: nothing that may still
// be spending is given up by a timer.
#include <signal.h>

#include "common/base/file_lock.h"
#include "common/base/limits.h"
#include "common/base/subprocess.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"
#include "tests/bench/bench_repository.h"

using namespace proctor;
using bench::give_up;
using bench::must;
using bench::wait_for;

namespace {

constexpr std::uint32_t kSandboxes = 2;

// What each run does: nobody else's.
std::string sleeping() {
  return "sleep 600." + std::to_string(::getpid());
}

void write_real_campaign(const fs::path& folder) {
  must(make_dirs(folder / "contracts"));
  must(make_dirs(folder / "repo"));
  must(write_file(folder / "repo" / "there", "x\n"));
  const std::string commit = bench::commit_all(folder / "repo");
  must(write_file(
      folder / "campaign.yaml",
      "name: loss-bench\nstrata: [language]\nreplicates: " + std::to_string(kSandboxes) +
          "\nmethods:\n  - name: sleeper\n    kind: command\n    command: " + sleeping() +
          "\n"
          "retries: {backoff: 0s}\n"
          "budget:\n  ledger: journal\n  global: \"1000.00\"\n  run: \"1.00\"\n"));
  must(write_file(folder / "contracts" / "one.yaml",
                  "id: one\ntitle: nothing\ntype: feature\nstrata: {language: none}\n"
                  "briefing: nothing is to be done\nrepository:\n  source: ../repo\n  commit: " +
                      commit +
                      "\nenvironment:\n  sandbox: bubblewrap\n"
                      "checks:\n  - id: there\n    command: test -f there\n    timeout: 10s\n"));
}

// How many of the runs have been asked for `times` times.
std::uint32_t asked(const StateFolder& folder, std::uint32_t times) {
  Result<JournalReader> reader = JournalReader::open(folder.journal());
  if (!reader.ok()) return 0;
  std::uint32_t count = 0;
  (void)reader->each_attempt(
      [&](const AttemptRecord& a) { count += a.core.attempt.no.raw() == times ? 1 : 0; });
  return count;
}

std::uint32_t sleepers() {
  CommandSpec count;
  count.argv = {"pgrep", "-c", "-x", "-f", sleeping()};
  const Result<CommandOutcome> outcome = run_command(count);
  return outcome.ok() ? static_cast<std::uint32_t>(std::strtoul(outcome->out.c_str(), nullptr, 10))
                      : 0;
}

}  // namespace

int main() {
  const TempDir dir = must(TempDir::create("loss-bench"));
  const StateFolder folder{dir.path()};
  write_real_campaign(dir.path());
  CommandSpec run;
  run.argv = {
      bench::program(PROCTOR_PROGRAM), "run", dir.path().string(), "--workers", "1", "--slots",
      std::to_string(kSandboxes)};
  Child campaign = must(Child::start(run, dir.path() / "log", Child::Lifetime::kDiesWithParent));
  const fs::path lock = folder.worker_root() / "workers" / "local-1" / "lock";
  wait_for("the runs to start",
           [&] { return asked(folder, 1) == kSandboxes && sleepers() == kSandboxes; });
  std::this_thread::sleep_for(limits::kSyncInterval * 2);  // a Sync has said that they run
  const std::optional<pid_t> worker = HostLock::last_holder(lock);
  if (!worker) give_up("no worker holds " + lock.string());
  const std::int64_t killed = bench::mono_ns();
  ::kill(*worker, SIGKILL);
  wait_for("the runs to be asked for again", [&] { return asked(folder, 2) == kSandboxes; });
  std::printf("figure loss.requeue_closed_s %.2f s\n", bench::seconds_since(killed));
  campaign.signal(SIGINT);
  campaign.signal(SIGINT);
  constexpr std::chrono::seconds kEnd(30);
  (void)campaign.wait(kEnd);
  return 0;
}
