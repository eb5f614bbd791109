// From `kill -9` of a coordinator to the first new run that its next life dispatches, and the
// memory it takes then: a campaign of 1,000,000 runs, of which 300,000 are done. `resume_bench
// [TASKS [REPLICATES [DONE [DIR]]]]`, with the real `proctor serve`.
//
// The runs are really dispatched and delivered, by simulated workers in one other process that live
// on; the clock starts with the signal, so it counts what an operator's supervisor would wait for:
// the registration's check, the plan, the journal, the ledger and the workers' reconnect.  Memory
// is the most that the new process has had until then.
#include <signal.h>

#include <chrono>

#include "common/base/subprocess.h"
#include "coordinator/shell/state_folder.h"
#include "coordinator/shell/status.h"
#include "tests/bench/bench_repository.h"
#include "tests/bench/dispatch_bench_workers.h"

using namespace proctor;
using bench::give_up;
using bench::must;

namespace {

void write_campaign(const fs::path& folder, std::uint32_t tasks, std::uint32_t replicates) {
  must(make_dirs(folder / "contracts"));
  must(make_dirs(folder / "repo"));
  must(write_file(folder / "repo" / "there", "x\n"));
  const std::string commit = bench::commit_all(folder / "repo");
  must(write_file(folder / "campaign.yaml",
                  "name: resume-bench\nmethods: [noop]\nstrata: [language]\nreplicates: " +
                      std::to_string(replicates) +
                      "\nbudget:\n  ledger: journal\n  global: \"1000000.00\"\n  run: \"0.50\"\n",
                  Durability::kLazy));
  for (std::uint32_t t = 0; t < tasks; ++t) {
    const std::string id = "task-" + std::to_string(t);
    must(write_file(folder / "contracts" / (id + ".yaml"),
                    "id: " + id +
                        "\ntitle: nothing\ntype: feature\nstrata: {language: none}\n"
                        "briefing: nothing is to be done\n"
                        "repository:\n  source: ../repo\n  commit: " +
                        commit +
                        "\nenvironment:\n  sandbox: none\n"
                        "checks:\n  - id: there\n    command: test -f there\n    timeout: 10s\n",
                    Durability::kLazy));
  }
}

std::uint64_t done_by(const StateFolder& folder) {
  const Result<std::string> text = read_file(folder.status(), std::size_t{64} << 20);
  if (!text.ok()) return 0;
  const Result<StatusSnapshot> status = parse_status(*text);
  return status.ok() ? status->done() : 0;
}

// VmHWM: the most it ever had.
double peak_mib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  constexpr std::string_view kPeak = "VmHWM:";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kPeak)) return std::strtod(line.c_str() + kPeak.size(), nullptr) / 1024;
  give_up("the coordinator is gone");
}

Child serve(const fs::path& campaign, bool resume) {
  CommandSpec command;
  command.argv = {bench::program(PROCTOR_PROGRAM), "serve", campaign.string()};
  if (resume) command.argv.push_back("--resume");
  return must(Child::start(command, campaign / (resume ? "second.log" : "first.log"),
                           Child::Lifetime::kDiesWithParent));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t tasks = bench::number_of(argc, argv, 1, 1'000);
  const std::uint32_t replicates = bench::number_of(argc, argv, 2, 1'000);
  const std::uint32_t done = bench::number_of(argc, argv, 3, 300'000);
  constexpr std::chrono::seconds kLongest(300);
  const TempDir dir = must(TempDir::create("resume-bench", 4 < argc ? argv[4] : ""));
  const StateFolder folder{dir.path() / "campaign"};
  std::optional<bench::Fleet> fleet =
      bench::Fleet::start({.workers = 4, .slots = 256, .keys = {}, .server_public_z85 = ""});
  if (!fleet) give_up("cannot fork");
  write_campaign(folder.campaign, tasks, replicates);

  CommandSpec freeze;
  freeze.argv = {bench::program(PROCTOR_PROGRAM), "plan", "--freeze", folder.campaign.string()};
  must(run_for_output(freeze));
  Child first = serve(folder.campaign, false);
  fleet->connect("ipc://" + (folder.state() / "coordinator.sock").string());
  const auto alive = [&](Child& life, const char* log) {
    if (!life.running())
      give_up("it ended: " + must(read_file(folder.campaign / log, std::size_t{1} << 20)));
    return true;
  };
  bench::wait_for(
      "the first life to come that far",
      [&] { return alive(first, "first.log") && done <= done_by(folder); }, kLongest);
  const std::int64_t killed = bench::mono_ns();
  first.signal(SIGKILL);
  Child second = serve(folder.campaign, true);
  bench::wait_for(
      "the second life to dispatch",
      [&] {
        return alive(second, "second.log") && fleet->so_far().first_new_in_later_life_ns != 0;
      },
      kLongest);
  const double peak = peak_mib(second.pid());
  const std::int64_t dispatched = fleet->so_far().first_new_in_later_life_ns;
  std::printf("%u runs, %llu done when it was killed\n", tasks * replicates,
              static_cast<unsigned long long>(done_by(folder)));
  std::printf("figure resume.first_dispatch_1m_s %.2f s\n",
              static_cast<double>(dispatched - killed) / 1e9);
  std::printf("figure resume.rss_mib %.0f MiB\n", peak);
  return 0;
}
