// What a workspace costs: create + change 3 files + extract the patch + destroy, on a snapshot of
// 2,000 files.  Prints lines "figure <name> <value> <unit>"; medians.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "worker/workspace/workspace.h"

namespace proctor {
namespace {

constexpr int kFiles = 2000;
constexpr int kOverlayCycles = 50;
constexpr int kCopyCycles = 5;

Result<std::string> git(const fs::path& dir, std::vector<std::string> args) {
  CommandSpec spec;
  spec.argv = {"git", "-c", "user.name=b", "-c", "user.email=b@b"};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.cwd = dir;
  return run_for_output(spec);
}

double elapsed_ms(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
      .count();
}

Result<Repository> make_repository(const fs::path& dir) {
  for (int i = 0; i < kFiles; ++i) {
    const fs::path folder = dir / ("d" + std::to_string(i % 40));
    PROCTOR_CHECK_OK(make_dirs(folder));
    std::string text;
    for (int line = 0; line < 60; ++line) text += "line " + std::to_string(i * line) + "\n";
    PROCTOR_CHECK_OK(
        write_file(folder / ("f" + std::to_string(i) + ".txt"), text, Durability::kLazy));
  }
  PROCTOR_TRY(const std::string init, git(dir, {"init", "-q"}));
  PROCTOR_TRY(const std::string add, git(dir, {"add", "-A"}));
  PROCTOR_TRY(const std::string commit, git(dir, {"commit", "-qm", "all"}));
  PROCTOR_TRY(const std::string head, git(dir, {"rev-parse", "HEAD"}));
  Repository out;
  out.source = dir.string();
  out.commit = head.substr(0, 40);
  return out;
}

Result<double> cycle(WorkspaceStore& store, const Snapshot& snapshot, int i) {
  const auto start = std::chrono::steady_clock::now();
  {
    PROCTOR_TRY(const auto ws, store.create(snapshot, "bench-" + std::to_string(i)));
    for (const char* name : {"d1/f1.txt", "d2/f42.txt", "d3/new.txt"}) {
      PROCTOR_CHECK_OK(write_file(ws->dir() / name, "changed\n", Durability::kLazy));
    }
    PROCTOR_TRY(const Patch patch, ws->extract_patch(1 << 20));
    if (patch.files != 3) return Error{Errc::kCorrupt, "bench: wrong patch"};
  }
  return elapsed_ms(start);
}

Status measure(bool overlay) {
  PROCTOR_TRY(const TempDir temp, TempDir::create("bench"));
  PROCTOR_CHECK_OK(make_dirs(temp.path() / "repo"));
  PROCTOR_TRY(const Repository repository, make_repository(temp.path() / "repo"));
  WorkspaceStoreOptions options;
  options.root = temp.path() / "store";
  options.owner = "bench";
  options.allow_overlay = overlay;
  PROCTOR_TRY(const auto store, open_workspace_store(options));
  const auto start = std::chrono::steady_clock::now();
  PROCTOR_TRY(const Snapshot snapshot, store->snapshot(repository, temp.path()));
  const double first_ms = elapsed_ms(start);
  std::vector<double> times;
  for (int i = 0; i < (overlay ? kOverlayCycles : kCopyCycles); ++i) {
    PROCTOR_TRY(const double ms, cycle(*store, snapshot, i));
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  if (store->kind() == WorkspaceKind::kOverlay) {
    std::printf("figure workspace.snapshot_2k_ms %.1f ms\n", first_ms);
    std::printf("figure workspace.cycle_2k_ms %.2f ms\n", median);
  } else {
    std::printf("figure workspace.copy_cycle_2k_ms %.2f ms\n", median);
  }
  return ok_status();
}

}  // namespace
}  // namespace proctor

int main() {
  for (const bool overlay : {true, false}) {
    if (const auto s = proctor::measure(overlay); !s.ok()) {
      std::fprintf(stderr, "workspace_bench: %s\n", s.error().detail.c_str());
      return 1;
    }
  }
  return 0;
}
