// What a sandbox costs: prints `figure NAME VALUE UNIT` lines for scripts/bench.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/integration/sandbox/docker_fixture.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/sandbox.h"

using namespace proctor;

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

template <class F>
double median_ms(int rounds, F&& f) {
  std::vector<double> ms;
  for (int i = 0; i < rounds; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    f();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
                     .count());
  }
  return median(ms);
}

int bubblewrap_figure(const fs::path& dir) {
  auto engine = open_sandbox_engine(SandboxKind::kBubblewrap, {"bench", ""});
  if (!engine.ok()) {
    std::fprintf(stderr, "sandbox_bench: %s\n", engine.error().detail.c_str());
    return 4;
  }
  SandboxSpec spec;
  spec.label = "bench";
  spec.workspace = dir;
  spec.memory_bytes = std::uint64_t{1} << 30;
  spec.processes = 256;
  spec.env = {{"PATH", "/usr/bin:/bin"}};
  auto sandbox = (*engine)->open(spec);
  if (!sandbox.ok()) return 4;
  ExecSpec exec;
  exec.command = ":";
  exec.stdout_file = dir / "out";
  exec.stderr_file = dir / "err";
  int failed = 0;
  const double ms = median_ms(100, [&] {
    auto outcome = (*sandbox)->run(exec, {});
    if (!outcome.ok() || outcome->exit_code != 0) ++failed;
  });
  if (failed != 0) return 1;
  std::printf("figure sandbox.bwrap_ms %.2f ms\n", ms);
  return 0;
}

// Ours against the least the Engine API can do: create, start, wait, remove of the same container.
// Taken in turns, so that both see the same machine.
int docker_figure(const fs::path& dir) {
  const std::string socket = testing::docker_socket();
  if (!docker_answers(socket)) {
    std::fprintf(stderr, "sandbox_bench: no Docker Engine answers at %s\n", socket.c_str());
    return 4;
  }
  const auto image = testing::test_image();
  auto engine = open_sandbox_engine(SandboxKind::kDocker, {"bench", socket});
  if (!image.ok() || !engine.ok()) return 4;
  SandboxSpec spec;
  spec.label = "bench";
  spec.workspace = dir;
  spec.image = *image;
  spec.memory_bytes = std::uint64_t{1} << 30;
  spec.processes = 256;
  spec.env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
  ExecSpec exec;
  exec.command = ":";
  exec.stdout_file = dir / "out";
  exec.stderr_file = dir / "err";
  int failed = 0;
  DockerApi api(socket);
  // The same first process as ours, so that the same containers are compared.
  const fs::path init = dir / "init";
  if (!write_file(init, oci_init_program(), Durability::kLazy, 0755).ok()) return 1;
  const std::string config = container_config(spec, {*image, {}}, init, "bench", exec.command);
  std::vector<double> ours, raw;
  for (int i = 0; i < 15; ++i) {
    ours.push_back(median_ms(1, [&] {
      auto sandbox = (*engine)->open(spec);
      if (!sandbox.ok() || !(*sandbox)->run(exec, {}).ok()) ++failed;
    }));
    raw.push_back(median_ms(1, [&] {
      const auto id = api.create(config);
      if (!id.ok() || !api.start(*id).ok() || !api.wait(*id).ok() || !api.remove(*id).ok())
        ++failed;
    }));
  }
  if (failed != 0) return 1;
  std::printf("figure sandbox.docker_ms %.1f ms\n", median(ours));
  std::printf("figure run.docker_overhead %.3f ratio\n", median(ours) / median(raw));
  return 0;
}

}  // namespace

int main() {
  auto dir = TempDir::create("proctor-sandbox-bench");
  if (!dir.ok()) return 4;
  const int bubblewrap = bubblewrap_figure(dir->path());
  const int docker = docker_figure(dir->path());
  return bubblewrap != 0 ? bubblewrap : docker;
}
