#include "worker/workspace/cache.h"

#include "common/base/digest.h"
#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

std::size_t folders_in(const fs::path& dir) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(dir)) n += entry.is_directory() ? 1 : 0;
  return n;
}

// With another tree than make_repo's.
Repo make_other_repo(const fs::path& dir) {
  Repo repo = make_repo(dir);
  put(dir / "more.txt", "two\n");
  git(dir, {"add", "-A"});
  git(dir, {"commit", "-qm", "two"});
  repo.commit = git(dir, {"rev-parse", "HEAD"});
  return repo;
}

TEST_SUITE("workspace") {
  TEST_CASE("room is made of what nobody uses, and it comes back when it is wanted") {
    const TempDir temp = temp_dir();
    const fs::path root = temp.path() / "store";
    const Repo one = make_repo(temp.path() / "one");
    const Repo two = make_other_repo(temp.path() / "two");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(root, kind);
      const Snapshot a = snapshot_of(*store, one.pinned()), b = snapshot_of(*store, two.pinned());
      auto in_a = create(*store, a, "a");
      REQUIRE(folders_in(root / "trees") == 2);
      const auto kept = make_room(root, std::uint64_t{1} << 40);
      REQUIRE(kept.ok());
      CHECK(kept->removed == 0);
      CHECK(kept->items == 4);  // two trees, two mirrors
      CHECK(0 < kept->bytes);
      CHECK(kept->in_use == 1);

      const auto room = make_room(root, 0);
      REQUIRE(room.ok());
      CHECK(room->removed == 3);
      CHECK(fs::exists(a.tree_dir));
      CHECK_FALSE(fs::exists(b.tree_dir));
      CHECK(slurp(in_a->dir() / "README.md") == "hello\nworld\n");  // undisturbed
      put(in_a->dir() / "README.md", "x\n");
      CHECK(extract(*in_a).paths == std::vector<std::string>{"README.md"});

      // Seen before it went: said once, then made again from the source.
      const auto gone = store->create(b, "b");
      REQUIRE_FALSE(gone.ok());
      CHECK(gone.error().code == Errc::kUnavailable);
      const Snapshot again = snapshot_of(*store, two.pinned());
      CHECK(slurp(create(*store, again, "b")->dir() / "more.txt") == "two\n");
    }
  }

  TEST_CASE("a store with a limit makes room for a new tree and keeps that") {
    const TempDir temp = temp_dir();
    const Repo one = make_repo(temp.path() / "one");
    const Repo two = make_other_repo(temp.path() / "two");
    WorkspaceStoreOptions options;
    options.root = temp.path() / "store";
    options.owner = "w";
    options.kind = WorkspaceKind::kCopy;
    options.cache_max = 1;
    auto store = open_workspace_store(options);
    REQUIRE(store.ok());
    const Snapshot a = snapshot_of(**store, one.pinned());
    CHECK(fs::exists(a.tree_dir));
    const Snapshot b = snapshot_of(**store, two.pinned());
    CHECK_FALSE(fs::exists(a.tree_dir));
    CHECK(fs::exists(b.tree_dir));
    CHECK(slurp(create(**store, b, "b")->dir() / "more.txt") == "two\n");
  }

  TEST_CASE("a folder of the root that is deleted under a live store is made anew") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      const fs::path root = temp.path() / to_string(kind);
      auto store = open_store(root, kind);
      create(*store, snapshot_of(*store, repo.pinned()), "first");
      const Digest key = sha256("setup");
      for (const std::vector<const char*>& gone :
           {std::vector{"trees"},
            {"mirrors"},
            {"layers"},
            {"apply.git"},
            {"workspaces"},
            {"trees", "mirrors", "layers", "apply.git", "workspaces"}}) {
        CAPTURE(to_string(kind));
        CAPTURE(gone.front());
        create(*store, snapshot_of(*store, repo.pinned()), "rests");
        for (const char* folder : gone)  // but for what is mounted there
          static_cast<void>(remove_tree(root / folder));
        const Snapshot again = snapshot_of(*store, repo.pinned());
        auto made = create(*store, again, "again");
        put(made->dir() / "README.md", "x\n");
        const Patch patch = extract(*made);
        CHECK(patch.paths == std::vector<std::string>{"README.md"});
        auto fresh = create(*store, again, "fresh");
        const auto applied = fresh->apply(patch.diff);
        CHECK_MESSAGE(applied.ok(), (applied.ok() ? "" : applied.error().detail));
        CHECK(slurp(fresh->dir() / "README.md") == "x\n");
        const auto making = store->layers().begin(key);
        CHECK_MESSAGE(making.ok(), (making.ok() ? "" : making.error().detail));
        CHECK(fs::status(root / "layers").permissions() == fs::perms::owner_all);
      }
    }
  }

  TEST_CASE("a root that is none is an error") {
    const auto room = make_room("/nonexistent/proctor", 0);
    REQUIRE_FALSE(room.ok());
    CHECK(room.error().code == Errc::kNotFound);
  }
}

}  // namespace
}  // namespace proctor
