// What an agent left is removed by a process of its own where it is much: its time is told, and is
// not the worker's.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/integration/workspace/fixture.h"
#include "tests/support/paths.h"
#include "worker/workspace/removal.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Of this process alone: what it waited for is not in it.
std::chrono::milliseconds own_cpu() {
  struct rusage use {};
  REQUIRE(::getrusage(RUSAGE_SELF, &use) == 0);
  const auto ms = [](const timeval& t) {
    return std::chrono::milliseconds(t.tv_sec * 1000 + t.tv_usec / 1000);
  };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

struct Place {
  Place() {
    options.root = temp.path() / "store";
    options.owner = "w1";
    options.remover.path = build_dir() / "proctor-worker";
  }
  std::unique_ptr<WorkspaceStore> open() const {
    auto opened = open_workspace_store(options);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    return std::move(opened).value();
  }
  std::unique_ptr<Workspace> make(WorkspaceStore& store) const {
    auto made = store.create(snapshot_of(store, repo.pinned()), "a");
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().detail));
    return std::move(made).value();
  }
  TempDir temp = TempDir::create("removal-test").value();
  Repo repo = make_repo(temp.path() / "repo");
  WorkspaceStoreOptions options;
};

// With long names: as many entries as an agent likes, at the cost of one call each.
void leave_many(const fs::path& dir, std::uint64_t entries, mode_t kind = S_IFREG) {
  const std::string tail(200, 'n');
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string path = dir / (std::to_string(i) + tail);
    REQUIRE((kind == S_IFDIR ? ::mkdir(path.c_str(), 0755)
                             : ::mknod(path.c_str(), S_IFREG | 0644, 0)) == 0);
  }
}

// As many of them as there are below what this store made for its workspaces.
std::uint64_t left_below(const fs::path& dir) {
  std::uint64_t out = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (200 < entry.path().filename().string().size()) ++out;
  return out;
}

}  // namespace

TEST_SUITE("removal") {
  TEST_CASE("what a large tree's removal takes is told and is not the worker's") {
    for (const auto kind : {std::optional<WorkspaceKind>(), std::optional(WorkspaceKind::kCopy)}) {
      Place place;
      place.options.kind = kind;
      const auto store = place.open();
      auto ws = place.make(*store);
      leave_many(ws->dir(), 8 * kRemovedHereFiles);
      const auto before = own_cpu();
      const RemovalCost took = ws->close();
      const auto mine = own_cpu() - before;
      CHECK(took.apart);
      CHECK(0 < took.memory_peak);
      CHECK(0 < took.cpu.count());
      CHECK(mine < took.cpu);
      CHECK(left_below(place.options.root) == 0);
      CHECK(ws->close().wall < took.wall);  // there is nothing to do twice
    }
  }

  TEST_CASE("what is little starts no process") {
    Place place;
    place.options.remover.path = "/no/such/program";
    const auto store = place.open();
    auto ws = place.make(*store);
    leave_many(ws->dir(), kRemovedHereFiles / 2);
    CHECK_FALSE(ws->close().apart);
    CHECK(left_below(place.options.root) == 0);
  }

  TEST_CASE("one large file is much too") {
    Place place;
    const auto store = place.open();
    auto ws = place.make(*store);
    const fs::path large = ws->dir() / "large";
    put(large, "");
    const int fd = ::open(large.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(0 <= fd);
    const int room = ::posix_fallocate(fd, 0, off_t{kRemovedHereBytes} + 1);
    ::close(fd);
    if (room != 0) {
      MESSAGE("left out: no room for a large file here");
      return;
    }
    CHECK(ws->close().apart);
  }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  TEST_CASE("beyond the limits of the process the rest is there for the next start alone") {
    Place place;
    place.options.remover.memory = std::uint64_t{1}
                                   << 20;  // less than a program has when it begins
    {
      const auto store = place.open();
      auto ws = place.make(*store);
      leave_many(ws->dir(), 4 * kRemovedHereFiles, S_IFDIR);  // whose names it has to hold
      CHECK(ws->close().apart);
      CHECK(0 < left_below(place.options.root));
    }
    const auto next = place.open();
    REQUIRE(next->clean_up().ok());
    CHECK(left_below(place.options.root) == 0);
  }
#endif
}
