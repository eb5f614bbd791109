// Which kinds of workspaces there are on this machine, and what is particular to one of them.
#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

TEST_SUITE("workspace kinds") {
  TEST_CASE("a kind that is asked for is used or refused, and the first that works is found") {
    const TempDir temp = temp_dir();
    const std::vector<WorkspaceKind> here = kinds(temp.path());
    for (const WorkspaceKind kind : kWorkspaceKinds) {
      CAPTURE(to_string(kind));
      CHECK(from_word<WorkspaceKind>(to_string(kind)) == kind);
      WorkspaceStoreOptions options{temp.path() / "store", "w1", kind, ""};
      const auto store = open_workspace_store(options);
      CHECK(store.ok() == (std::ranges::count(here, kind) == 1));
      if (store.ok())
        CHECK((*store)->kind() == kind);
      else
        CHECK(
            store.error().detail.starts_with("workspaces: " + std::string(to_string(kind)) + ": "));
    }
    CHECK(open_store(temp.path() / "store")->kind() == here.front());
    CHECK(from_word<WorkspaceKind>("auto") == std::nullopt);
  }

  TEST_CASE("copies that share blocks take none of their own" * doctest::test_suite("full")) {
    const TempDir temp = temp_dir();
    const XfsDisk xfs(temp.path());
    if (!xfs) {
      MESSAGE("not run: no XFS here");
      return;
    }
    const Repo repo = make_repo(temp.path() / "repo");
    constexpr std::size_t kLarge = std::size_t{16} << 20;
    put(repo.dir / "large.bin", std::string(kLarge, 'x'));
    git(repo.dir, {"add", "-A"});
    git(repo.dir, {"commit", "-qm", "large"});
    const Repo large{repo.dir, git(repo.dir, {"rev-parse", "HEAD"})};
    auto store = open_store(xfs.path() / "store", WorkspaceKind::kReflink);
    const Snapshot snapshot = snapshot_of(*store, large.pinned());
    std::error_code ec;
    const auto before = fs::space(xfs.path(), ec).free;
    std::vector<std::unique_ptr<Workspace>> open;
    for (int i = 0; i < 10; ++i) open.push_back(create(*store, snapshot, std::to_string(i)));
    CHECK(before < fs::space(xfs.path(), ec).free + kLarge);  // plain ones take ten times as much
    put(open[0]->dir() / "large.bin", "mine\n");
    CHECK(extract(*open[0]).paths == std::vector<std::string>{"large.bin"});
    CHECK(fs::file_size(open[1]->dir() / "large.bin") == kLarge);
  }
}

}  // namespace
}  // namespace proctor
