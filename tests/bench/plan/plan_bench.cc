// One million runs: drawn, written to a file, read and parsed again; and what it took of memory.
// Prints `figure NAME VALUE UNIT` lines for scripts/bench.  `plan_bench TASKS METHODS REPLICATES`
// measures another shape.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/plan/plan.h"

namespace {

using namespace proctor;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PlanShape shape_with(std::uint32_t tasks, std::uint32_t methods, std::uint32_t replicates) {
  const char* languages[] = {"python", "go", "rust", "c"};
  const char* types[] = {"bug_fix", "feature", "refactor"};
  PlanShape shape;
  shape.strata_keys = {"language", "type"};
  for (std::uint32_t t = 0; t < tasks; ++t) {
    const std::string id = "task-" + std::to_string(t);
    shape.tasks.push_back({id, sha256(id), {languages[t % 4], types[t % 3]}});
  }
  for (std::uint32_t m = 0; m < methods; ++m)
    shape.methods.push_back("method-" + std::to_string(m));
  shape.stages = {{"main", replicates}};
  return shape;
}

int measure(const PlanShape& shape) {
  auto dir = TempDir::create();
  if (!dir.ok()) return 1;
  const fs::path path = dir->path() / "plan.csv";

  auto start = std::chrono::steady_clock::now();
  {
    const auto plan = draw_plan(shape);
    if (!plan.ok()) return 1;
    const double drawn = seconds_since(start);
    const std::string csv = to_csv(*plan);
    const double formatted = seconds_since(start);
    if (!write_file(path, csv).ok()) return 1;
    const double written = seconds_since(start);
    std::printf("runs %u, file %zu bytes: drawn %.3f s, formatted %.3f s, written %.3f s\n",
                plan->size(), csv.size(), drawn, formatted - drawn, written - formatted);
    std::printf("figure plan.draw_1m_s %.3f s\n", written);
  }
  start = std::chrono::steady_clock::now();
  const auto bytes = read_file(path, limits::kPlanFileBytes);
  if (!bytes.ok()) return 1;
  const auto back = parse_plan("plan.csv", *bytes, shape);
  if (!back.ok()) return 1;
  std::printf("figure plan.parse_1m_s %.3f s\n", seconds_since(start));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("CPU of all of it: user %ld.%02ld s, system %ld.%02ld s\n", usage.ru_utime.tv_sec,
              usage.ru_utime.tv_usec / 10000, usage.ru_stime.tv_sec,
              usage.ru_stime.tv_usec / 10000);
  std::printf("figure plan.peak_mib %ld MiB\n", usage.ru_maxrss / 1024);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, unsigned long otherwise) {
    return static_cast<std::uint32_t>(i < argc ? std::strtoul(argv[i], nullptr, 10) : otherwise);
  };
  return measure(shape_with(argument(1, 5000), argument(2, 4), argument(3, 50)));
}
