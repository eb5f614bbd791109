// What a sandbox costs: prints `figure NAME VALUE UNIT` lines for scripts/bench.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

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

}  // namespace

int main() {
  auto dir = TempDir::create("proctor-sandbox-bench");
  if (!dir.ok()) return 4;
  return bubblewrap_figure(dir->path());
}
