// worker.warm_start_ms: a second worker on a host whose mirror and checkout are there: from its
// start, as a process, until the first command of its first run has begun in its sandbox, which
// says so itself.  Under `proctor serve`, with one worker after the other.  `warm_start_bench
// [WORKERS]`.  Beside it, worker.cold_start_ms: the same of the first one, which fetches and checks
// out 2,000 files.
#include <signal.h>

#include <algorithm>
#include <vector>

#include "common/base/subprocess.h"
#include "coordinator/shell/state_folder.h"
#include "tests/bench/bench_repository.h"

using namespace proctor;
using bench::give_up;
using bench::must;
using bench::wait_for;

namespace {

constexpr int kFiles = 2'000;
constexpr std::uint32_t kRuns = 10'000;  // more than all of them get to
constexpr std::chrono::seconds kEnd(30);

void write_campaign(const fs::path& folder) {
  for (int i = 0; i < kFiles; ++i) {
    const fs::path file =
        folder / "repo" / ("d" + std::to_string(i % 40)) / ("f" + std::to_string(i));
    must(make_dirs(file.parent_path()));
    must(write_file(file, "file " + std::to_string(i) + "\n", Durability::kLazy));
  }
  const std::string commit = bench::commit_all(folder / "repo");
  must(make_dirs(folder / "contracts"));
  must(write_file(folder / "campaign.yaml",
                  "name: warm-start\nmethods: [noop]\nstrata: [language]\nreplicates: " +
                      std::to_string(kRuns) +
                      "\nbudget:\n  ledger: journal\n  global: \"100000.00\"\n  run: \"1.00\"\n"));
  must(write_file(folder / "contracts" / "one.yaml",
                  "id: one\ntitle: one command\ntype: feature\nstrata: {language: shell}\n"
                  "briefing: nothing is to be done\nrepository:\n  source: ../repo\n  commit: " +
                      commit +
                      "\nenvironment:\n  sandbox: bubblewrap\n"
                      "checks:\n  - id: now\n    command: date +%s%N\n    timeout: 10s\n"));
}

// When the first command of each attempt that is here began, by the clock of the day.
std::vector<std::int64_t> begun_ns(const StateFolder& folder) {
  std::vector<std::int64_t> out;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder.runs(), ec), end; !ec && it != end;
       it.increment(ec)) {
    if (it->path().filename() != "stdout" || it->path().parent_path().filename() != "now") continue;
    if (it->path().native().find("/.incoming/") != std::string::npos) continue;
    if (const auto text = read_file(it->path(), 64); text.ok() && !text->empty())
      out.push_back(std::strtoll(text->c_str(), nullptr, 10));
  }
  std::ranges::sort(out);
  return out;
}

std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// From the start of a worker until its first command: milliseconds.
double first_command_ms(const StateFolder& folder, const std::string& name) {
  CommandSpec worker;
  worker.argv = {fs::path(bench::program(PROCTOR_PROGRAM)).parent_path() / "proctor-worker",
                 "--connect",
                 "ipc://" + (folder.state() / "coordinator.sock").string(),
                 "--name",
                 name,
                 "--slots",
                 "1",
                 "--root",
                 folder.worker_root().string(),
                 "--give-up-after",
                 "60"};
  const std::int64_t started = wall_ns();
  Child child = must(
      Child::start(worker, folder.campaign / (name + ".log"), Child::Lifetime::kDiesWithParent));
  std::int64_t first = 0;
  wait_for("the first run of a worker", [&] {
    const std::vector<std::int64_t> all = begun_ns(folder);
    const auto mine = std::ranges::upper_bound(all, started);
    if (mine != all.end()) first = *mine;
    return mine != all.end();
  });
  child.signal(SIGINT);
  if (!child.wait(kEnd)) give_up("a worker does not leave");
  return static_cast<double>(first - started) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint32_t workers = bench::number_of(argc, argv, 1, 7);
  const TempDir dir = must(TempDir::create("warm"));  // short: the socket lies below
  const StateFolder folder{dir.path()};
  write_campaign(dir.path());
  CommandSpec serve;
  serve.argv = {bench::program(PROCTOR_PROGRAM), "serve", dir.path().string(), "--workers", "0"};
  Child coordinator =
      must(Child::start(serve, dir.path() / "serve.log", Child::Lifetime::kDiesWithParent));
  wait_for("the coordinator", [&] { return fs::exists(folder.state() / "coordinator.sock"); });
  std::printf("figure worker.cold_start_ms %.1f ms\n", first_command_ms(folder, "first"));
  std::vector<double> warm;
  for (std::uint32_t i = 0; i < workers; ++i)
    warm.push_back(first_command_ms(folder, "next-" + std::to_string(i)));
  std::ranges::sort(warm);
  std::printf("warm starts: %.1f to %.1f ms\n", warm.front(), warm.back());
  std::printf("figure worker.warm_start_ms %.1f ms\n", warm[warm.size() / 2]);
  coordinator.signal(SIGINT);
  coordinator.signal(SIGINT);
  (void)coordinator.wait(kEnd);
  return 0;
}
