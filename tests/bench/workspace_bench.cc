// What workspaces cost once their commit is checked out, beside what else could be done in the same
// run: `git clone --shared`, `git worktree add`, `cp -a`.  `workspace_bench [FILES...]`: sizes of
// the repositories, 2000 20000 200000 by default.  Prints lines "figure NAME VALUE UNIT".
//   workspace.cycle_*_ms      create, change 10 files, extract the patch, destroy; median
//   workspace.bounded_ms      the same on a disk of its own that ends at a limit, where asked for
//   workspace.cycle_growth    the largest over the smallest
//   workspace.extract_per_s   changed files per second, 10,000 of them; and how that grows
//   workspace.disk_kib        of an open workspace, beyond what was changed
//   workspace.parallel64      cycles per second with 64 workspaces open, over the best of fewer
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "tests/bench/bench_repository.h"
#include "worker/workspace/workspace.h"

using namespace proctor;
using bench::mono_ns;
using bench::must;
using bench::seconds_since;

namespace {

constexpr int kChanged = 10;
constexpr int kFolder = 50;  // files in each
constexpr std::size_t kCycles = 60;
constexpr std::size_t kOthers = 5;  // repetitions of what takes seconds

struct Scene {
  explicit Scene(int n) : files(n), temp(must(TempDir::create("workspace-bench"))) {
    for (int i = 0; i < files; ++i) {
      std::string text;
      for (int line = 0; line < 40; ++line) text += "line " + std::to_string(i * line) + "\n";
      const fs::path file = temp.path() / "repo" / path(i);
      if (i % kFolder == 0) must(make_dirs(file.parent_path()));
      must(write_file(file, text, Durability::kLazy));
    }
    Repository repository;
    repository.source = (temp.path() / "repo").string();
    repository.commit = bench::commit_all(temp.path() / "repo");
    WorkspaceStoreOptions options;
    options.root = temp.path() / "store";
    options.owner = "bench";
    store = must(open_workspace_store(options));
    snapshot = must(store->snapshot(repository, temp.path()));
  }
  static std::string path(int i) {
    return "d" + std::to_string(i / kFolder) + "/f" + std::to_string(i) + ".txt";
  }
  int files;
  TempDir temp;
  std::unique_ptr<WorkspaceStore> store;
  Snapshot snapshot;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void change(const fs::path& dir, int files, int of) {
  for (int i = 0; i < files; ++i)
    must(write_file(dir / Scene::path(i * (of / files)), "changed\n", Durability::kLazy));
}

void cycle(Scene& scene, WorkspaceStore& store, const std::string& label) {
  constexpr DiskBound kBound{std::uint64_t{2} << 30, 1'000'000};  // counts where the store's do
  const auto ws = must(store.create(scene.snapshot, label, nullptr, kBound));
  change(ws->dir(), kChanged, scene.files);
  if (must(ws->extract_patch(std::size_t{1} << 20)).files != kChanged)
    bench::give_up("another patch than was made");
}

void cycle(Scene& scene, const std::string& label) {
  cycle(scene, *scene.store, label);
}

// Milliseconds of `what`, each time.
template <class What>
std::vector<double> times(std::size_t n, const What& what) {
  std::vector<double> out;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t begun = mono_ns();
    what(i);
    out.push_back(seconds_since(begun) * 1e3);
  }
  return out;
}

void run(const fs::path& cwd, std::vector<std::string> argv) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  spec.cwd = cwd;
  (void)must(run_for_output(spec));
}

void others(const Scene& scene) {
  const fs::path repo = scene.temp.path() / "repo", to = scene.temp.path() / "other";
  const auto clone = times(kOthers, [&](std::size_t) {
    run(repo, {"git", "clone", "-q", "--shared", ".", to.string()});
    must(remove_tree(to));
  });
  const auto worktree = times(kOthers, [&](std::size_t) {
    run(repo, {"git", "worktree", "add", "-q", "--detach", to.string()});
    run(repo, {"git", "worktree", "remove", "--force", to.string()});
  });
  const auto copy = times(kOthers, [&](std::size_t) {
    run(repo, {"cp", "-a", scene.snapshot.tree_dir.string(), to.string()});
    must(remove_tree(to));
  });
  std::printf(
      "%d files, made and removed: git clone --shared %.0f ms, git worktree %.0f ms, "
      "cp -a %.0f ms\n",
      scene.files, median(clone), median(worktree), median(copy));
}

double measure_cycle(Scene& scene) {
  cycle(scene, "warm");
  const auto seen =
      times(kCycles, [&](std::size_t i) { cycle(scene, "cycle-" + std::to_string(i)); });
  const auto [least, most] = std::ranges::minmax(seen);
  std::printf("%d files: a cycle takes %.2f ms (%.2f to %.2f)\n", scene.files, median(seen), least,
              most);
  std::printf("figure workspace.cycle_%dk_ms %.2f ms\n", scene.files / 1000, median(seen));
  return median(seen);
}

void measure_bounded(Scene& scene) {
  WorkspaceStoreOptions options;
  options.root = scene.temp.path() / "store";
  options.owner = "bounded";
  options.bounded_disks = true;
  const auto store = open_workspace_store(options);
  if (!store.ok()) {
    std::printf("no bounded disks: %s\n", store.error().detail.c_str());
    return;
  }
  cycle(scene, **store, "warm");
  const auto seen =
      times(kCycles, [&](std::size_t i) { cycle(scene, **store, "b" + std::to_string(i)); });
  const auto [least, most] = std::ranges::minmax(seen);
  std::printf("on a bounded disk a cycle takes %.2f ms (%.2f to %.2f)\n", median(seen), least,
              most);
  std::printf("figure workspace.bounded_ms %.2f ms\n", median(seen));
}

void measure_extract(Scene& scene) {
  double last = 0;
  for (const int changed : {1, 100, 10'000}) {
    const auto ws = must(scene.store->create(scene.snapshot, "extract-" + std::to_string(changed)));
    change(ws->dir(), changed, scene.files);
    const double ms = median(
        times(kOthers, [&](std::size_t) { (void)must(ws->extract_patch(std::size_t{64} << 20)); }));
    last = changed / ms * 1e3;
    std::printf("%d changed files are extracted in %.2f ms: %.0f per second\n", changed, ms, last);
  }
  std::printf("figure workspace.extract_per_s %.0f 1/s\n", last);
}

// What a setup of 2,000 files costs: made and kept by the first workspace, and below each later
// one.
void measure_setup(Scene& scene) {
  constexpr int kMade = 2'000, kRounds = 10;
  const fs::path home = scene.temp.path() / "home";
  const auto made = [&](const fs::path& dir) {
    must(make_dirs(dir / "made"));
    for (int i = 0; i < kMade; ++i)
      must(write_file(dir / "made" / std::to_string(i), "made by setup\n", Durability::kLazy));
  };
  std::optional<SetupLayer> layer;
  const auto first = times(kRounds, [&](std::size_t i) {
    auto maker = must(scene.store->create(scene.snapshot, "maker-" + std::to_string(i)));
    made(maker->dir());
    must(make_dirs(home));
    SetupLayer record;
    record.steps = Json::array();
    const SetupMaking making = must(scene.store->layers().begin(sha256(std::to_string(i))));
    layer = must(making.keep(must(maker->surrender()), home, std::move(record)));
    maker.reset();
    (void)must(scene.store->create(scene.snapshot, "on-it-" + std::to_string(i), &*layer));
  });
  const auto straight = times(kRounds, [&](std::size_t i) {
    auto ws = must(scene.store->create(scene.snapshot, "straight-" + std::to_string(i)));
    made(ws->dir());
  });
  const auto opened = times(kCycles, [&](std::size_t i) {
    const auto ws =
        must(scene.store->create(scene.snapshot, "later-" + std::to_string(i), &*layer));
    must(write_file(ws->dir() / "touched", "x", Durability::kLazy));
  });
  const auto [least, most] = std::ranges::minmax(opened);
  std::printf(
      "a setup of %d files: made in each workspace %.1f ms, made and kept %.1f ms, a workspace on "
      "what was kept %.2f ms (%.2f to %.2f)\n",
      kMade, median(straight), median(first), median(opened), least, most);
  std::printf("figure workspace.setup_first_ms %.1f ms\n", median(first));
  std::printf("figure workspace.setup_second_ms %.2f ms\n", median(opened));
}

std::uint64_t kib_below(const fs::path& dir) {
  std::uint64_t blocks = 0;
  for (auto it = fs::recursive_directory_iterator(dir); it != fs::recursive_directory_iterator();
       ++it) {
    if (it->path().filename() == "merged") it.disable_recursion_pending();
    struct stat st {};
    if (::lstat(it->path().c_str(), &st) == 0) blocks += static_cast<std::uint64_t>(st.st_blocks);
  }
  return blocks / 2;
}

void measure_disk(Scene& scene) {
  constexpr std::uint64_t kOpen = 64;
  const fs::path workspaces = scene.temp.path() / "store" / "workspaces";
  const std::uint64_t before = kib_below(workspaces);
  std::vector<std::unique_ptr<Workspace>> open;
  for (std::uint64_t i = 0; i < kOpen; ++i)
    open.push_back(must(scene.store->create(scene.snapshot, "disk-" + std::to_string(i))));
  std::printf("figure workspace.disk_kib %.1f KiB\n",
              static_cast<double>(kib_below(workspaces) - before) / kOpen);
}

// Cycles per second with that many workspaces open at any time.
double rate(Scene& scene, unsigned open) {
  constexpr int kEach = 20;
  const std::int64_t begun = mono_ns();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < open; ++t)
    threads.emplace_back([&scene, t] {
      for (int i = 0; i < kEach; ++i)
        cycle(scene, "p" + std::to_string(t) + "-" + std::to_string(i));
    });
  for (std::thread& thread : threads) thread.join();
  return open * kEach / seconds_since(begun);
}

void measure_parallel(Scene& scene) {
  double best = 0, last = 0;
  for (const unsigned open : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    last = rate(scene, open);
    best = std::max(best, last);
    std::printf("%u at once: %.0f cycles per second\n", open, last);
  }
  std::printf("figure workspace.parallel64 %.2f\n", last / best);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {2'000, 20'000, 200'000};
  if (::geteuid() != 0) (void)enter_own_mounts();  // as a worker does; the kind is said below
  double first = 0, last = 0;
  for (const int files : sizes) {
    Scene scene(files);
    std::printf("workspaces of kind %s\n", std::string(to_string(scene.store->kind())).c_str());
    last = measure_cycle(scene);
    if (files == sizes.front()) {
      first = last;
      measure_bounded(scene);
      measure_disk(scene);
      measure_setup(scene);
      measure_parallel(scene);
    }
    if (files == sizes[std::min<std::size_t>(1, sizes.size() - 1)]) measure_extract(scene);
    others(scene);
  }
  std::printf("figure workspace.cycle_growth %.2f\n", last / first);
  return 0;
}
