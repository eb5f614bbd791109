// What sandboxes of one host are shown beside each other: no lock that one takes is seen or felt by
// another, and nobody sees what another opens.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "common/base/subprocess.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/programs.h"
#include "worker/selftest/attack_program.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kProgramAt = "/opt/attack";
constexpr const char* kToolsAt = "/opt/tools";
constexpr auto kLong = std::chrono::minutes(4);

struct Place {
  Place(Bench& b, const std::string& name, const fs::path& tools)
      : bench(b), dir(b.scratch() / name), spec(b.spec()) {
    REQUIRE(make_dirs(dir / "program").ok());
    REQUIRE(make_dirs(dir / "workspace").ok());
    fs::permissions(bench.scratch(), fs::perms(0755));
    fs::permissions(dir / "workspace", fs::perms(0777));  // the user inside may be another
    REQUIRE(write_file(dir / "program/attack", attack_program(), Durability::kLazy, 0755).ok());
    spec.label += "-" + name;
    spec.workspace = dir / "workspace";
    spec.workspace_volume.clear();
    spec.mounts.push_back({dir / "program", kProgramAt, false});
    if (!tools.empty()) spec.mounts.push_back({tools, kToolsAt, false, true});
  }
  Said run(const std::string& attack) const {
    ExecSpec exec;
    exec.command = "exec " + std::string(kProgramAt) + "/attack " + attack + " at=" + kToolsAt +
                   " below=" + kToolsAt + "/compiler";
    exec.timeout = kLong;
    exec.stdout_file = dir / "out";
    exec.stderr_file = dir / "err";
    return testing::run(bench, spec, exec);
  }
  Bench& bench;
  fs::path dir;
  SandboxSpec spec;
};

// What one said who marked all it could, and one who looked for that meanwhile.
struct Seen {
  std::string by_marker, by_other;
};
Seen beside(Bench& bench, const fs::path& tools) {
  const Place marker(bench, "marker", tools), other(bench, "other", tools);
  Seen seen;
  std::atomic<bool> over{false};
  std::jthread marks([&] {
    seen.by_marker = marker.run("mark-shared").out;
    over = true;
  });
  while (!over && !fs::exists(marker.spec.workspace / "held"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(over);
  seen.by_other = other.run("see-shared").out;
  REQUIRE(write_file(marker.spec.workspace / "over", "", Durability::kLazy, kOpenFile).ok());
  marks.join();
  return seen;
}

// What a worker that is root needs of its host for it.
bool can_be_own() {
  const TempDir dir = must(TempDir::create("own-inodes"));
  CommandSpec spec;
  spec.argv = {"unshare",
               "-m",
               "sh",
               "-c",
               "mount -t tmpfs tmpfs $0 && mkdir $0/none $0/usr && mknod $0/null c 1 3 && "
               "mount -t overlay overlay -o ro,lowerdir=/usr:$0/none $0/usr",
               dir.path().string()};
  spec.timeout = kLong;
  const auto tried = run_command(spec);
  return tried.ok() && tried->exit_code == 0;
}

// "gvisor": a kernel of its own keeps them.
bool own_inodes(Bench& bench) {
  const std::string inodes = bench.engine().enforcement().at("inodes");
  if (bench.engine().kind() == SandboxKind::kBubblewrap && can_be_own()) CHECK(inodes == "own");
  if (inodes == "shared") MESSAGE("left out: sandboxes here share inodes, and say so");
  return inodes != "shared";
}

}  // namespace

TEST_SUITE("own inodes") {
  TEST_CASE("no sandbox sees locks of another, or what it opens, on anything both are shown") {
    const auto bench = make_bench();
    if (!bench) return;
    if (!own_inodes(*bench)) return;
    const Seen seen = beside(*bench, {});
    CHECK(seen.by_other == "DONE\n");
    CHECK(seen.by_marker == "DONE\n");
  }
  TEST_CASE("nor on a toolchain that both are shown") {
    const auto bench = make_bench();
    if (!bench || !own_inodes(*bench)) return;
    const TempDir tools = must(TempDir::create("own-inodes"));
    fs::permissions(tools.path(), fs::perms(0755));
    REQUIRE(write_file(tools.path() / "compiler", "x", Durability::kLazy, 0755).ok());
    const Seen seen = beside(*bench, tools.path());
    CHECK(seen.by_other == "DONE\n");
    CHECK(seen.by_marker == "DONE\n");
  }
  TEST_CASE("who comes after another finds no lock of his, and what the host has now") {
    const auto bench = make_bench();
    if (!bench || !own_inodes(*bench)) return;
    const TempDir tools = must(TempDir::create("own-inodes"));
    fs::permissions(tools.path(), fs::perms(0755));
    for (const char* text : {"first", "second"}) {
      REQUIRE(write_file(tools.path() / "compiler", text, Durability::kLazy, 0755).ok());
      const Place place(*bench, text, tools.path());
      REQUIRE(write_file(place.dir / "workspace/over", "", Durability::kLazy, kOpenFile).ok());
      CHECK(place.run("mark-shared").out == "DONE\n");
      CHECK(place.run("see-shared").out == "DONE\n");
      ExecSpec exec =
          exec_of(*bench, std::string("read -r x < ") + kToolsAt + "/compiler; echo $x");
      CHECK(testing::run(*bench, place.spec, exec).out == std::string(text) + "\n");
    }
  }
}
