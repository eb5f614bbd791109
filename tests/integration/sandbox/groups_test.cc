// Control groups that one command after the other uses: nothing of one is seen in the next.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <set>

#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

using End = ExecOutcome::End;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::string owner() {
  return "test-" + std::to_string(::getpid());
}

std::set<ino_t> group_numbers() {
  std::set<ino_t> out;
  for (const std::string& group : groups_of(owner())) {
    struct stat s = {};
    if (::stat(group.c_str(), &s) == 0) out.insert(s.st_ino);
  }
  return out;
}

bool memory_by_groups(Bench& bench) {
  if (bench.engine().enforcement().at("memory").find("cgroup") != std::string::npos) return true;
  MESSAGE("not run: no control group keeps the limit on memory here");
  return false;
}

// Of version 2 before Linux 6.12 the largest use of memory does not begin anew.
bool used_again(Bench& bench) {
  if (bench.engine().enforcement().at("memory") != "cgroup2" || !groups_of(owner()).empty())
    return true;
  MESSAGE("not run: memory.peak cannot be reset here");
  return false;
}

SandboxSpec limited(Bench& bench) {
  SandboxSpec spec = bench.spec();
  spec.memory_bytes = 256 * kMiB;
  spec.processes = 50;
  return spec;
}

}  // namespace

TEST_SUITE("sandbox groups") {
  TEST_CASE("commands of the same limits take turns in the same groups") {
    const auto bench = make_bench();
    if (!bench || !memory_by_groups(*bench)) return;
    const SandboxSpec spec = limited(*bench);
    const ExecSpec exec = exec_of(*bench, "head -c 100000 /dev/zero > made");
    CHECK(run(*bench, spec, exec).outcome.exit_code == 0);
    if (!used_again(*bench)) return;
    const std::set<ino_t> before = group_numbers();
    CHECK_FALSE(before.empty());
    for (int i = 0; i < 20; ++i) CHECK(run(*bench, spec, exec).outcome.exit_code == 0);
    CHECK(group_numbers() == before);
    CHECK(bench->engine().clean_up().ok());
    CHECK(groups_of(owner()).empty());
    CHECK(run(*bench, spec, exec).outcome.exit_code == 0);
  }

  TEST_CASE("what one command used is not counted for the next") {
    const auto bench = make_bench();
    if (!bench || !memory_by_groups(*bench)) return;
    SandboxSpec spec = limited(*bench);
    const ExecSpec little = exec_of(*bench, "true");
    const ExecSpec much =
        exec_of(*bench, "x=$(head -c 60000000 /dev/zero | tr '\\0' x); test ${#x} = 60000000");
    // In the group's page cache when the next begins.
    const ExecSpec files = exec_of(*bench, "head -c 60000000 /dev/zero > made");
    for (const ExecSpec& before : {much, files}) {
      const ExecOutcome first = run(*bench, spec, before).outcome;
      CHECK(first.exit_code == 0);
      CHECK(50 * kMiB < first.memory_peak);
      const ExecOutcome next = run(*bench, spec, little).outcome;
      CHECK(0 < next.memory_peak);
      CHECK(next.memory_peak < 30 * kMiB);
    }
    // Two thirds of its CPU time each.
    spec.cpu = std::chrono::seconds(3);
    const ExecSpec busy = exec_of(*bench, "timeout 2 sh -c 'while :; do :; done'; true");
    for (int i = 0; i < 2; ++i) CHECK(run(*bench, spec, busy).outcome.end == End::kExited);
  }

  TEST_CASE("a command that fails after one that ran out of memory has merely failed") {
    const auto bench = make_bench();
    if (!bench || !memory_by_groups(*bench)) return;
    const SandboxSpec spec = limited(*bench);
    const ExecSpec hog = exec_of(*bench, "exec tail /dev/zero");
    CHECK(run(*bench, spec, hog).outcome.end == End::kMemory);
    const ExecOutcome next = run(*bench, spec, exec_of(*bench, "exit 3")).outcome;
    CHECK(next.end == End::kExited);
    CHECK(next.exit_code == 3);
  }

  TEST_CASE("page cache beyond a little is given back while others run") {
    const auto bench = make_bench();
    if (!bench || !memory_by_groups(*bench)) return;
    const SandboxSpec spec = limited(*bench);
    CHECK(
        run(*bench, spec, exec_of(*bench, "head -c 60000000 /dev/zero > made")).outcome.exit_code ==
        0);
    const auto held = [] {
      std::uint64_t sum = 0;
      for (const std::string& group : groups_of(owner()))
        for (const char* file : {"/memory.usage_in_bytes", "/memory.current"}) {
          std::uint64_t bytes = 0;
          std::ifstream(group + file) >> bytes;
          sum += bytes;
        }
      return sum;
    };
    CHECK(run(*bench, spec, exec_of(*bench, "true")).outcome.exit_code == 0);
    CHECK(eventually([&] { return held() < 10 * kMiB; }));
  }
}
