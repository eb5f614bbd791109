// Workspaces on file systems of their own: what is written ends where it was told to end, wherever
// it is written, and nothing is left of them: no mount, no loop device, no file.
#include "worker/workspace/bounded_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/base/folder_tree.h"
#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr DiskBound kSmall{8 * kMiB, 200};

std::unique_ptr<WorkspaceStore> open_bounded(const fs::path& root) {
  WorkspaceStoreOptions options;
  options.root = root;
  options.owner = "w1";
  options.bounded_disks = true;
  auto store = open_workspace_store(options);
  if (store.ok()) return std::move(store).value();
  REQUIRE(store.error().code == Errc::kUnavailable);
  MESSAGE("not run: " << store.error().detail);
  return nullptr;
}

// How much of zeros that are not holes fits into a new file, up to `most`.
std::uint64_t fill(const fs::path& file, std::uint64_t most) {
  const std::string block(kMiB, 'x');
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(fd.valid());
  std::uint64_t done = 0;
  while (done < most) {
    const ssize_t n = ::write(fd.get(), block.data(), block.size());
    if (n <= 0) {
      CHECK(errno == ENOSPC);
      break;
    }
    done += static_cast<std::uint64_t>(n);
  }
  return done;
}

// Mounts and loop devices that have to do with `root`.
std::string left_of(const fs::path& root) {
  std::string out;
  const auto look = [&](const std::string& text) {
    for (std::size_t at = text.find(root.string()); at != std::string::npos;
         at = text.find(root.string(), at + 1))
      out += text.substr(at, text.find_first_of(" \n", at) - at) + "\n";
  };
  look(slurp("/proc/self/mounts"));
  std::error_code ec;
  for (const auto& device : fs::directory_iterator("/sys/block", ec))
    if (const fs::path file = device.path() / "loop/backing_file"; fs::exists(file, ec))
      look(slurp(file));
  return out;
}

struct Bounded {
  TempDir temp = temp_dir();
  fs::path root = temp.path() / "store";
  std::unique_ptr<WorkspaceStore> store = open_bounded(root);
  Snapshot snapshot;
  explicit operator bool() {
    if (store) snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
    return store != nullptr;
  }
  std::unique_ptr<Workspace> open(const DiskBound& bound, const SetupLayer* setup = nullptr) {
    auto ws = store->create(snapshot, "agent", setup, bound);
    REQUIRE_MESSAGE(ws.ok(), (ws.ok() ? "" : ws.error().detail));
    return std::move(ws).value();
  }
};

TEST_SUITE("bounded disk") {
  TEST_CASE("workspace, homes and results together take no more than their disk has") {
    Bounded s;
    if (!s) return;
    CHECK(s.store->bounds_disks());
    {
      auto ws = s.open(kSmall);
      const auto bounded = ws->bounded();
      REQUIRE(bounded);
      CHECK(200 <= bounded->entries);
      CHECK(folder_use(bounded->beside).files == 0);
      CHECK_FALSE(ws->used_up());
      const std::uint64_t first = fill(bounded->beside / "home", 4 * kMiB);
      CHECK(first == 4 * kMiB);
      CHECK_FALSE(ws->used_up());
      const std::uint64_t all = first + fill(ws->dir() / "large", 1000 * kMiB);
      // It has room for more than the limit, for those who watch to see it passed.
      CHECK(kSmall.bytes < all);
      CHECK(all < kSmall.bytes + kSmall.bytes / 8 + 65 * kMiB);
      CHECK(ws->used_up());
      // The worker itself can go on: tests are put back, results have a folder.
      fs::remove(ws->dir() / "tests/test_a.py");
      CHECK(ws->restore({"tests/**"}).value() == std::vector<std::string>{"tests/test_a.py"});
      CHECK(make_dirs(bounded->beside / "results").ok());
      CHECK(ws->used_up());
      CHECK(folder_use(s.root / "workspaces").bytes < all + 8 * kMiB);
    }
    s.store.reset();
    CHECK(left_of(s.root).empty());
  }

  TEST_CASE("empty files end too, and holes take nothing") {
    Bounded s;
    if (!s) return;
    auto ws = s.open(kSmall);
    REQUIRE(::truncate((ws->dir() / "README.md").c_str(), std::int64_t{64} << 30) == 0);
    CHECK_FALSE(ws->used_up());
    std::uint64_t made = 0;
    while (made < 1000) {
      const UniqueFd fd(::open((ws->dir() / ("f" + std::to_string(made))).c_str(),
                               O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
      if (!fd.valid()) break;
      ++made;
    }
    CHECK(200 <= made);
    CHECK(made < 1000);
    CHECK(ws->used_up());
    CHECK(ws->put_file("after/all", "x\n", 0644).ok());
    CHECK(ws->used_up());
  }

  TEST_CASE("a patch is what it is on any other workspace") {
    Bounded s;
    if (!s) return;
    auto plain = create(*s.store, s.snapshot, "plain");
    CHECK_FALSE(plain->bounded());
    CHECK_FALSE(plain->used_up());
    auto ws = s.open(kSmall);
    for (Workspace* one : {plain.get(), ws.get()}) {
      put(one->dir() / "new/file.txt", "new\n", 0755);
      put(one->dir() / "README.md", "hello\nthere\n");
      fs::remove_all(one->dir() / "src/deep");
      fs::remove(one->dir() / "crlf.txt");
      fs::create_symlink("../x", one->dir() / "tests/link");
      put(one->dir() / "build/ignored.o", "object\n");
    }
    const Patch patch = extract(*ws);
    CHECK(patch.diff == extract(*plain).diff);
    auto fresh = s.open(kSmall);
    REQUIRE(fresh->apply(patch.diff).ok());
    CHECK(extract(*fresh).diff == patch.diff);
  }

  TEST_CASE("what nobody touched is handed on, without what was written beside it") {
    Bounded s;
    if (!s) return;
    fs::path where;
    {
      auto ws = s.open(kSmall);
      where = ws->dir();
      put(ws->bounded()->beside / "home/.cache/x", "x\n");
    }
    auto again = s.open(kSmall);
    CHECK(again->dir() == where);
    CHECK(folder_use(again->bounded()->beside).files == 0);
    auto larger = s.open({16 * kMiB, 200});
    CHECK(larger->dir() != where);
    fill(larger->bounded()->beside / "home", 1000 * kMiB);
    const fs::path filled = larger->dir();
    larger.reset();
    CHECK(s.open({16 * kMiB, 200})->dir() != filled);
  }

  TEST_CASE("what setup made on such a disk becomes a layer with its deletions") {
    Bounded s;
    if (!s) return;
    auto maker = s.open(kSmall);
    put(maker->dir() / "build/lib.o", "object\n");
    fs::remove(maker->dir() / "crlf.txt");
    fs::remove_all(maker->dir() / "tests");
    put(maker->dir() / "tests/other.py", "pass\n");  // an opaque folder
    const fs::path home = maker->bounded()->beside / "home";
    put(home / ".cache/pip", "wheel\n");
    const auto kept = keep_setup(*s.store, std::move(maker), home, sha256("key"));
    REQUIRE_MESSAGE(kept.ok(), (kept.ok() ? "" : kept.error().detail));
    CHECK(slurp(kept->home() / ".cache/pip") == "wheel\n");
    auto ws = s.open(kSmall, &*kept);
    CHECK(slurp(ws->dir() / "build/lib.o") == "object\n");
    CHECK_FALSE(fs::exists(ws->dir() / "crlf.txt"));
    CHECK(slurp(ws->dir() / "tests/other.py") == "pass\n");
    CHECK_FALSE(fs::exists(ws->dir() / "tests/test_a.py"));
    // And it can be laid below what was changed meanwhile.
    auto later = s.open(kSmall);
    put(later->dir() / "README.md", "changed\n");
    REQUIRE(later->lay_below(*kept).value());
    CHECK(slurp(later->dir() / "README.md") == "changed\n");
    CHECK(slurp(later->dir() / "build/lib.o") == "object\n");
  }

  TEST_CASE("a killed life's disks are taken over or gone") {
    TempDir temp = temp_dir();
    const fs::path root = temp.path() / "store", note = temp.path() / "note";
    const Repository repository = make_repo(temp.path() / "repo").pinned();
    if (!open_bounded(root)) return;
    const pid_t pid = ::fork();
    if (pid == 0) {
      WorkspaceStoreOptions options;
      options.root = root;
      options.owner = "w1";
      options.bounded_disks = true;
      auto store = open_workspace_store(options);
      if (!store.ok()) ::_exit(1);
      const auto snapshot = (*store)->snapshot(repository, "/");
      if (!snapshot.ok()) ::_exit(2);
      auto kept = (*store)->create(*snapshot, "kept", nullptr, kSmall);
      auto lost = (*store)->create(*snapshot, "lost", nullptr, kSmall);
      if (!kept.ok() || !lost.ok()) ::_exit(3);
      for (const auto* ws : {&*kept, &*lost})
        if (!write_file((*ws)->dir() / "done", "work\n", Durability::kLazy).ok()) ::_exit(4);
      if (!write_file(note, (*kept)->left_to_others()->dir.string(), Durability::kLazy).ok())
        ::_exit(5);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
    {
      auto store = open_bounded(root);
      REQUIRE(store);
      const LeftWorkspace left{slurp(note), ""};
      REQUIRE(store->clean_up({left}).ok());
      auto mine = store->adopt(snapshot_of(*store, repository), "kept", left);
      REQUIRE_MESSAGE(mine.ok(), (mine.ok() ? "" : mine.error().detail));
      REQUIRE((*mine)->bounded());
      put((*mine)->bounded()->beside / "home/x", "x\n");
      CHECK(extract(**mine).paths == std::vector<std::string>{"done"});
      CHECK(fill((*mine)->dir() / "more", 1000 * kMiB) < 100 * kMiB);
      CHECK((*mine)->used_up());
    }
    CHECK(left_of(root).empty());
  }

  // A sandbox that begins has a copy of all mounts, until it has thrown them off.
  TEST_CASE("a disk is whole where others hold its mounts while it is made") {
    Bounded s;
    if (!s) return;
    std::jthread others([](const std::stop_token& stop) {
      std::vector<pid_t> children;
      while (!stop.stop_requested()) {
        const pid_t pid = ::fork();
        if (pid == 0) {
          (void)::unshare(CLONE_NEWNS);
          ::usleep(100'000);
          ::_exit(0);
        }
        children.push_back(pid);
        ::usleep(1000);
      }
      for (const pid_t pid : children) ::waitpid(pid, nullptr, 0);
    });
    for (std::uint64_t i = 0; i < 10; ++i) {
      auto ws = s.open({(8 + i) * kMiB, 200});  // each is the first of its size
      CHECK_FALSE(ws->used_up());
    }
  }

  TEST_CASE("a store that cannot bound its disks says so and opens not at all") {
    const TempDir temp = temp_dir();
    WorkspaceStoreOptions options;
    options.root = temp.path() / "store";
    options.owner = "w1";
    options.kind = WorkspaceKind::kCopy;
    options.bounded_disks = true;
    const auto store = open_workspace_store(options);
    REQUIRE_FALSE(store.ok());
    CHECK(store.error().code == Errc::kUnavailable);
    CHECK(store.error().detail.find("bounded disks") != std::string::npos);
  }
}

}  // namespace
}  // namespace proctor
