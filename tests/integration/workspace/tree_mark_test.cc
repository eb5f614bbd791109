// A tree that is changed or deleted under the workspaces that stand on it.
#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/tree_state.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Folders are stamped with a clock that moves by ticks: whatever comes now is later than `of`.
void wait_for_tick(const TempDir& temp) {
  const auto stamp = [&] {
    put(temp.path() / "tick", "x");
    struct stat st {};
    REQUIRE(::stat((temp.path() / "tick").c_str(), &st) == 0);
    return std::pair(st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
  };
  const auto first = stamp();
  while (stamp() == first) {
  }
}

}  // namespace

TEST_SUITE("workspace") {
  TEST_CASE("what lies below an overlay is looked at and what was deleted is found") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / std::string(to_string(kind)), kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      wait_for_tick(temp);
      auto ws = create(*store, snapshot, "a");
      using Look = TreeMark::Look;
      // Its own changes are none of the tree's.
      put(ws->dir() / "src/deep/new", "x");
      fs::remove(ws->dir() / "tests/data/x.txt");
      CHECK(extract(*ws).files == 2);
      CHECK(ws->whole(Look::kSentinel).ok());
      CHECK(ws->whole(Look::kFolders).ok());
      wait_for_tick(temp);
      fs::remove(snapshot.tree_dir / "src/deep/er/file.txt");
      CHECK(ws->whole(Look::kSentinel).ok());
      CHECK(ws->whole(Look::kFolders).ok() == !is_overlay(kind));
      fs::remove_all(snapshot.tree_dir.parent_path());
      for (const Look look : {Look::kSentinel, Look::kFolders}) {
        const Status whole = ws->whole(look);
        CHECK(whole.ok() == !is_overlay(kind));
        if (!whole.ok()) CHECK(whole.error().code == Errc::kUnavailable);
      }
    }
  }
}
