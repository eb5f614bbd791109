// Runs of `noop` with a one-command suite on a repository of 2,000 files, per second and core,
// through the real `proctor run`, under bubblewrap and in an image by the OCI runtime, and by runsc
// where that is: the figure is the journal's, between the results of warm runs.
// Under bubblewrap the same runs are then replayed: `noop` has no agent, so that such a run is
// acceptance already.  Runs whose agent is one command, and their replay, follow for comparison.
// `run_bench [PROCTOR [RUNS [SLOTS [bwrap|oci]]]]`; else $PROCTOR_BIN, else the one built with it.
// The first 40 results are left out: they wait for the mirror and the first checkout.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "common/base/subprocess.h"
#include "common/images/image_store.h"
#include "coordinator/journal/journal_reader.h"
#include "tests/bench/bench_repository.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/isolation_proof.h"

using namespace proctor;
using bench::must;

namespace {

constexpr int kFiles = 2'000;
constexpr unsigned long kWarmUp = 40;

void put(const fs::path& file, const std::string& text) {
  if (make_dirs(file.parent_path()).ok() && write_file(file, text, Durability::kLazy).ok()) return;
  bench::give_up("cannot write " + file.string());
}

std::string make_repository(const fs::path& dir) {
  for (int i = 0; i < kFiles; ++i)
    put(dir / ("d" + std::to_string(i % 40)) / ("f" + std::to_string(i) + ".txt"),
        "file " + std::to_string(i) + "\n" + std::string(1'000, 'x') + "\n");
  return bench::commit_all(dir);
}

struct Kind {
  const char* name;
  const char* figure;
  const char* cpu_figure;
  std::string environment;  // of the contract
  unsigned long runs;
  std::string method = "noop";
};

void make_campaign(const fs::path& dir, const std::string& commit, const Kind& kind) {
  put(dir / "campaign.yaml", "name: run-bench\nmethods: [" + kind.method +
                                 "]\nreplicates: " + std::to_string(kind.runs) +
                                 "\nbudget:\n  global: \"100000.00\"\n  run: \"1.00\"\n"
                                 "strata: [language]\n");
  put(dir / "contracts" / "one.yaml",
      "id: one\ntitle: one command\ntype: feature\nstrata: {language: shell}\n"
      "briefing: nothing is to be done\nrepository:\n  source: ../../repo\n  commit: " +
          commit + "\nenvironment:\n  " + kind.environment +
          "\nchecks:\n  - id: there\n    command: test -f d1/f1.txt\n    timeout: 10s\n");
}

struct Seen {
  std::vector<std::int64_t> results_ms;
  std::size_t good = 0;
};
Seen read_journal(const fs::path& campaign) {
  JournalReader reader = must(JournalReader::open(campaign / ".proctor" / "journal.sqlite"));
  Seen seen;
  const Status status = reader.each_attempt([&](const AttemptRecord& a) {
    if (!a.core.has_result) return;
    seen.results_ms.push_back(a.result_at.raw());
    seen.good += a.core.outcome == RunOutcome::kSuccess ? 1 : 0;
  });
  if (!status.ok()) std::exit(1);
  std::ranges::sort(seen.results_ms);
  return seen;
}

// With the first processes of sandboxes, which bwrap does not wait for: they become ours.
double children_cpu_ms() {
  while (0 < ::waitpid(-1, nullptr, WNOHANG)) continue;
  rusage r{};
  ::getrusage(RUSAGE_CHILDREN, &r);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(r.ru_utime) + ms(r.ru_stime);
}

struct Bare {
  double cpu_ms = 0, median_ms = 0;  // 0: it does not work here
};

// The least there is to a sandbox, as the machine is now.
Bare measure_bare_bwrap(const fs::path& dir) {
  CommandSpec bare;
  bare.argv = {"bwrap",
               "--unshare-all",
               "--die-with-parent",
               "--ro-bind",
               "/",
               "/",
               "--proc",
               "/proc",
               "--dev",
               "/dev",
               "--bind",
               dir.string(),
               dir.string(),
               "--",
               "/bin/sh",
               "-c",
               ":"};
  constexpr int kTimes = 60;
  std::vector<double> ms;
  const double cpu_before = children_cpu_ms();
  for (int i = 0; i < kTimes; ++i) {
    const std::int64_t begun = bench::mono_ns();
    if (!must(run_command(bare)).success()) return {};
    ms.push_back(bench::seconds_since(begun) * 1e3);
  }
  std::ranges::sort(ms);
  return {(children_cpu_ms() - cpu_before) / kTimes, ms[ms.size() / 2]};
}

// Its runs, made by this command line of the program, whose journal is below `made`; false when it
// did not go as it should.
bool measure(const std::string& program, std::vector<std::string> words, const Kind& kind,
             const fs::path& made, const std::string& slots, double& cpu_ms) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  CommandSpec run;
  run.argv = {program};
  run.argv.insert(run.argv.end(), words.begin(), words.end());
  run.argv.insert(run.argv.end(), {"--workers", "1", "--slots", slots});
  run.timeout = std::chrono::seconds(240) + std::chrono::milliseconds(100) * kind.runs;
  const double cpu_before = children_cpu_ms();
  const CommandOutcome outcome = must(run_command(run));
  const Seen seen = read_journal(made);
  // It ends with 1, for a control that passes is a broken task: here it is the whole work.
  if (seen.good != kind.runs || seen.results_ms.size() <= kWarmUp + 1) {
    std::fprintf(stderr, "run_bench: %s: %s; %zu of %lu runs succeeded\n%s\n", kind.name,
                 outcome.describe().c_str(), seen.good, kind.runs, outcome.err.c_str());
    return false;
  }
  const std::size_t counted = seen.results_ms.size() - 1 - kWarmUp;
  const double seconds =
      static_cast<double>(seen.results_ms.back() - seen.results_ms[kWarmUp]) / 1000.0;
  std::printf("%s: %lu runs, %s slots, %u cores; %.2f s for the last %zu\n", kind.name, kind.runs,
              slots.c_str(), cores, seconds, counted);
  std::printf("figure %s %.1f 1/s\n", kind.figure, static_cast<double>(counted) / seconds / cores);
  cpu_ms = (children_cpu_ms() - cpu_before) / static_cast<double>(kind.runs);
  std::printf("figure %s %.2f ms\n", kind.cpu_figure, cpu_ms);
  return true;
}

// One campaign of this kind.
bool measure(const std::string& program, const Kind& kind, const fs::path& dir,
             const std::string& commit, const std::string& slots, double& cpu_ms) {
  const fs::path campaign = dir / kind.name;
  make_campaign(campaign, commit, kind);
  return measure(program, {"run", campaign.string()}, kind, campaign, slots, cpu_ms);
}

// Its patches once more: acceptance alone.
bool measure_replay(const std::string& program, const Kind& kind, const fs::path& campaign,
                    const std::string& slots) {
  double cpu_ms = 0;
  return measure(program, {"replay", campaign.string(), "--name", "bench"}, kind,
                 campaign / "regrades" / "bench", slots, cpu_ms);
}

// Memory groups that the kernel has, seen or not: what page cache keeps of removed ones too.
long memory_groups() {
  std::ifstream in("/proc/cgroups");
  std::string line, name;
  long hierarchy = 0, groups = 0;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    if (words >> name >> hierarchy >> groups && name == "memory") return groups;
  }
  return 0;
}

// Beside a bare bwrap of the same minute, before and after: a ratio that no machine's mood moves.
bool measure_bwrap(const std::string& program, unsigned long runs, const fs::path& dir,
                   const std::string& commit, const std::string& slots) {
  const Bare before = measure_bare_bwrap(dir);
  const long groups = memory_groups();
  double cpu_ms = 0;
  if (!measure(program,
               {"bwrap", "run.bwrap_per_core_s", "run.bwrap_cpu_ms", "sandbox: bubblewrap", runs},
               dir, commit, slots, cpu_ms))
    return false;
  // A group of somebody else's may have come or gone meanwhile.
  std::printf("figure run.bwrap_groups_kept %ld groups\n", memory_groups() - groups);
  const Bare after = measure_bare_bwrap(dir);
  bool replayed =
      measure_replay(program, {"replay", "run.replay_per_core_s", "run.replay_cpu_ms", "", runs},
                     dir / "bwrap", slots);
  const Kind command{"command",
                     "run.command_per_core_s",
                     "run.command_cpu_ms",
                     "sandbox: bubblewrap",
                     runs,
                     "{name: command, command: echo 1 > new.txt}"};
  double command_cpu_ms = 0;
  replayed = measure(program, command, dir, commit, slots, command_cpu_ms) &&
             measure_replay(program,
                            {"command replay", "run.command_replay_per_core_s",
                             "run.command_replay_cpu_ms", "", runs},
                            dir / "command", slots) &&
             replayed;
  if (!(0 < before.cpu_ms) || !(0 < after.cpu_ms)) return replayed;
  const double bare_ms = (before.cpu_ms + after.cpu_ms) / 2;
  std::printf("figure run.bwrap_alone_ms %.2f ms\n", before.median_ms);
  std::printf("figure run.bwrap_alone_cpu_ms %.2f ms\n", bare_ms);
  std::printf("figure run.bwrap_over_alone %.2f\n", cpu_ms / bare_ms);
  return replayed;
}

// An image in a store of our own, which the worker finds by this variable.
std::string make_image(const fs::path& dir) {
  if (!make_dirs(dir).ok()) std::exit(1);
  const testing::TestImage image = must(testing::write_test_image(dir, "run-bench:latest"));
  const fs::path store = dir / "store";
  must(must(ImageStore::open(store)).import_archive(image.archive));
  ::setenv(kImageStoreVariable, store.c_str(), 1);
  return image.id;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string program = 1 < argc ? argv[1] : bench::program(PROCTOR_PROGRAM);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned long runs = 2 < argc ? std::strtoul(argv[2], nullptr, 10) : 400;
  // A run waits longer than it computes: for five syncs of disks, and for the kernel to let its
  // sandbox into control groups.
  constexpr unsigned kSlotsPerCore = 8;
  const std::string slots = 3 < argc ? argv[3] : std::to_string(kSlotsPerCore * cores);
  const std::string only = 4 < argc ? argv[4] : "";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const TempDir temp = must(TempDir::create("run-bench"));
  // Away from what the benchmark before this one has just deleted.
  spread_subfolders(temp.path());
  const fs::path dir = temp.path() / std::to_string(::getpid());
  const std::string commit = make_repository(dir / "repo");
  bool good = true;
  double cpu_ms = 0;
  if (only.empty() || only == "bwrap") good = measure_bwrap(program, runs, dir, commit, slots);
  if (::geteuid() != 0 || !(only.empty() || only == "oci")) return good ? 0 : 1;
  const std::string image = make_image(dir / "image");
  const Kind oci{"oci", "run.oci_per_core_s", "run.oci_cpu_ms", "image: run-bench@" + image,
                 std::max(runs / 2, kWarmUp + 10)};
  good = measure(program, oci, dir, commit, slots, cpu_ms) && good;
  SandboxOptions options;
  options.owner = "run-bench";
  options.images = dir / "image" / "store";
  options.oci_runtime = kRunsc;
  const auto engine = open_sandbox_engine(SandboxKind::kOci, options);
  const auto proof = engine.ok() ? prove_kind(**engine, options) : engine.error();
  if (!proof.ok() || proof->verdict == IsolationProof::Verdict::kUnfit) {
    std::printf("runsc: not run: %s\n",
                (proof.ok() ? proof->detail : proof.error().detail).c_str());
    return good ? 0 : 1;
  }
  const Kind runsc{"runsc", "run.oci_runsc_per_core_s", "run.oci_runsc_cpu_ms",
                   oci.environment + "\npolicy:\n  isolation: userspace", kWarmUp + 20};
  return measure(program, runsc, dir, commit, slots, cpu_ms) && good ? 0 : 1;
}
