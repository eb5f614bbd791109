// A workspace's own .git after the candidate's code has run: what git obeys is put back.
#include <sys/stat.h>

#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

const std::string kEvil = "[diff]\n\texternal = true\n";

std::vector<std::string> put_back(Workspace& ws, const MadeUnder& made) {
  const auto back = ws.restore_git(made);
  REQUIRE_MESSAGE(back.ok(), (back.ok() ? "" : back.error().detail));
  return *back;
}

TEST_SUITE("workspace") {
  TEST_CASE("what git obeys is put back as the snapshot and setup left it") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      CHECK(put_back(*ws, {}).empty());
      const std::string config = slurp(dir / ".git/config"), head = git(dir, {"rev-parse", "HEAD"});
      // Setup of the untouched snapshot has hooks of its own, and a repository in a folder.
      put(dir / ".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
      put(dir / ".git/config", config + "[core]\n\thooksPath = .husky\n");
      put(dir / "src/deep/.git", "gitdir: ../../.git/modules/deep\n");
      fs::remove(dir / ".git/HEAD");
      const fs::path keep = temp.path() / "keep" / std::string(to_string(kind));
      const MadeUnder made = ws->made_under({}, keep).value();
      CHECK(made.paths == std::vector<std::string>{".git/HEAD", ".git/config", ".git/hooks/",
                                                   ".git/hooks/pre-commit", "src/deep/.git"});
      CHECK(put_back(*ws, made).empty());
      put(dir / ".git/HEAD", "ref: refs/heads/main\n");
      put(dir / ".git/config", kEvil);
      put(dir / ".git/hooks/post-checkout", "#!/bin/sh\n", 0755);
      put(dir / ".git/hooks/pre-commit", "exit 0\n", 0755);
      put(dir / ".git/info/attributes", "* diff=evil\n");
      put(dir / ".git/objects/info/alternates", "/tmp/evil\n");
      put(dir / ".git/refs/heads/main", std::string(40, '0') + "\n");
      fs::remove_all(dir / ".git/objects/pack");
      fs::create_symlink("/tmp", dir / ".git/objects/pack");
      put(dir / "src/.git", "gitdir: /tmp/evil\n");
      put(dir / "tests/data/.git/config", kEvil);
      put(dir / "mine/.git/config", kEvil);  // a folder that is the candidate's own
      const std::vector<std::string> back = put_back(*ws, made);
      for (const char* path :
           {".git/HEAD", ".git/config", ".git/hooks/post-checkout", ".git/hooks/pre-commit",
            ".git/info/attributes", ".git/objects/info/alternates", ".git/objects/pack",
            ".git/refs/heads/main", "src/.git", "tests/data/.git"})
        CHECK_MESSAGE(std::ranges::count(back, path) == 1, path);
      CHECK_FALSE(fs::exists(dir / ".git/HEAD"));
      CHECK(slurp(dir / ".git/config") == config + "[core]\n\thooksPath = .husky\n");
      CHECK(slurp(dir / ".git/hooks/pre-commit") == "#!/bin/sh\n");
      CHECK_FALSE(fs::exists(dir / ".git/hooks/post-checkout"));
      CHECK_FALSE(fs::exists(dir / ".git/info/attributes"));
      CHECK_FALSE(fs::exists(dir / "src/.git"));
      CHECK_FALSE(fs::exists(dir / "tests/data/.git"));
      CHECK(slurp(dir / "src/deep/.git") == "gitdir: ../../.git/modules/deep\n");
      CHECK(slurp(dir / "mine/.git/config") == kEvil);
      put(dir / ".git/HEAD", "ref: refs/heads/main\n");
      CHECK(git(dir, {"rev-parse", "HEAD"}) == head);
      CHECK(git(dir, {"fsck", "--strict"}).find("error") == std::string::npos);
      CHECK(put_back(*ws, made) == std::vector<std::string>{".git/HEAD"});
      CHECK(put_back(*ws, made).empty());
      // Nothing of the setup is at hand: the snapshot's own has the say.
      MadeUnder lost = made;
      lost.at = temp.path() / "gone";
      // A file that was found right and has not moved since is not looked at again.
      put(dir / ".git/config", kEvil);
      put(dir / ".git/hooks/pre-commit", "exit 0\n", 0755);
      put_back(*ws, lost);
      CHECK(slurp(dir / ".git/config") == config);
      CHECK_FALSE(fs::exists(dir / ".git/hooks"));
    }
  }

  TEST_CASE("plain files that make a repository of a folder of the snapshot lose their HEAD") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const auto bare = [](const fs::path& dir) {
      put(dir / "HEAD", "ref: refs/heads/main\n");
      put(dir / "config", kEvil);
      put(dir / "objects/info/packs", "");
      put(dir / "refs/heads/main", std::string(40, '0') + "\n");
    };
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      bare(ws->dir() / "src");
      bare(ws->dir() / "mine");  // a folder of the candidate's own
      put(ws->dir() / "tests/HEAD", "a file of that name and nothing beside it\n");
      put(ws->dir() / "tests/data/HEAD", "ref: refs/heads/main\n");
      put(ws->dir() / "tests/data/commondir", "/tmp/evil\n");
      CHECK(put_back(*ws, {}) == std::vector<std::string>{"src/HEAD", "tests/data/HEAD"});
      CHECK_FALSE(fs::exists(ws->dir() / "src/HEAD"));
      CHECK(fs::exists(ws->dir() / "src/refs/heads/main"));
      CHECK(fs::exists(ws->dir() / "mine/HEAD"));
      CHECK(fs::exists(ws->dir() / "tests/HEAD"));
      CHECK(put_back(*ws, {}).empty());
      // Setup of the untouched snapshot made one: it is the task's.
      MadeUnder made;
      made.paths = {"src/HEAD"};
      bare(ws->dir() / "src");
      CHECK(put_back(*ws, made).empty());
      ws->close();
    }
  }

  TEST_CASE(
      "where a folder of the snapshot has become a link, git finds nothing of a candidate's") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir(), home = temp.path() / "home" / std::string(to_string(kind));
      const std::vector<SeenAt> places{{"/workspace", dir, ""}, {"/proctor/home", home, "~/"}};
      const auto led = [&] {
        const auto back = ws->restore_git({}, places);
        REQUIRE_MESSAGE(back.ok(), (back.ok() ? "" : back.error().detail));
        return *back;
      };
      // In the workspace: the folder itself, one below it, one above it, by two links.
      put(dir / "cand/.git/config", kEvil);
      put(dir / "cand/in/deep/.git", "gitdir: /tmp/evil\n");
      put(dir / "cand/in/HEAD", "ref: refs/heads/main\n");
      put(dir / "cand/in/refs/heads/main", "");
      put(dir / "mine/.git/config", kEvil);  // nothing leads there
      fs::create_symlink("cand/../cand/in", dir / "step");
      fs::remove_all(dir / "src");
      fs::create_symlink("/workspace/step", dir / "src");
      CHECK(led() == std::vector<std::string>{"cand/.git", "cand/in/HEAD", "cand/in/deep/.git"});
      CHECK(fs::exists(dir / "mine/.git/config"));
      CHECK(fs::is_symlink(dir / "src"));  // the candidate's work
      CHECK(led().empty());
      // In the home, and above it there.
      put(home / "x/.git/config", kEvil);
      put(home / ".git/config", kEvil);
      put(home / "y/.git/config", kEvil);
      fs::remove(dir / "src");
      fs::create_symlink("/proctor/home/x", dir / "src");
      CHECK(led() == std::vector<std::string>{"~/.git", "~/x/.git"});
      CHECK(fs::exists(home / "y/.git/config"));
      // By the kernel's folders every place is to be reached again: the link itself goes.
      put(dir / "cand/.git/config", kEvil);
      for (const char* target : {"/proc/self/root/workspace/cand", "/dev/fd/../cwd/cand",
                                 "../proc/self/cwd/cand", "through"}) {
        CAPTURE(std::string(target));
        fs::remove(dir / "src");
        fs::remove(dir / "through");
        fs::create_symlink("/proc/self/root/proctor/home/y", dir / "through");
        fs::create_symlink(target, dir / "src");
        CHECK(led() == std::vector<std::string>{"src"});
        CHECK_FALSE(fs::is_symlink(dir / "src"));
      }
      // To nowhere, to itself, out of everything.
      for (const char* target : {"nowhere", "src", "/etc", "/workspace/..", "../../..", "calc"}) {
        CAPTURE(std::string(target));
        fs::remove(dir / "src");
        fs::create_symlink(target, dir / "src");
        CHECK(led().empty());
      }
      ws->close();
    }
  }

  TEST_CASE("a .git that is gone, a link, a file, a pipe or closed is the snapshot's again") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    put(temp.path() / "outside/config", kEvil);
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      for (const char* what : {"gone", "link", "file", "pipe", "closed", "deep"}) {
        CAPTURE(std::string(what));
        auto ws = create(*store, snapshot, what);
        const fs::path git_dir = ws->dir() / ".git";
        const std::string config = slurp(git_dir / "config");
        if (std::string_view(what) == "closed") {
          put(git_dir / "config", kEvil);
          fs::permissions(git_dir, fs::perms::none);
        } else if (std::string_view(what) == "deep") {
          fs::path deep = git_dir / "objects";
          for (int i = 0; i < 150; ++i) deep /= "d";
          REQUIRE(make_dirs(deep).ok());
        } else {
          fs::remove_all(git_dir);
        }
        if (std::string_view(what) == "link") fs::create_symlink(temp.path() / "outside", git_dir);
        if (std::string_view(what) == "file") put(git_dir, "gitdir: /tmp/evil\n");
        if (std::string_view(what) == "pipe") REQUIRE(::mkfifo(git_dir.c_str(), 0644) == 0);
        CHECK_FALSE(put_back(*ws, {}).empty());
        CHECK(slurp(git_dir / "config") == config);
        CHECK(git(ws->dir(), {"status", "--porcelain"}).empty());
        CHECK(git(ws->dir(), {"log", "--format=%s"}) == "snapshot");
        // git itself has refreshed its index since.
        const auto again = put_back(*ws, {});
        CHECK_MESSAGE((again.empty() || again == std::vector<std::string>{".git/index"}),
                      again.size());
        ws->close();
      }
    }
    CHECK(slurp(temp.path() / "outside/config") == kEvil);
  }

  TEST_CASE("what a kept setup made of .git is below, and found right without a copy") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto maker = create(*store, snapshot, "maker");
      put(maker->dir() / ".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
      put(maker->dir() / "src/.git", "gitdir: elsewhere\n");
      fs::remove(maker->dir() / ".git/index");
      const fs::path home = temp.path() / "home" / std::string(to_string(kind));
      REQUIRE(make_dirs(home).ok());
      const auto layer =
          keep_setup(*store, std::move(maker), home, sha256(std::string(to_string(kind))));
      REQUIRE_MESSAGE(layer.ok(), (layer.ok() ? "" : layer.error().detail));
      auto agent = create(*store, snapshot, "agent", &*layer);
      MadeUnder made = agent->made_under({"tests/**"}, {}).value();
      made.at = layer->work();
      CHECK(made.paths == std::vector<std::string>{".git/hooks/", ".git/hooks/pre-commit",
                                                   ".git/index", "src/.git"});
      for (const SetupLayer* below : {&*layer, static_cast<const SetupLayer*>(nullptr)}) {
        CAPTURE(below != nullptr);
        auto ws = create(*store, snapshot, "acceptance", below);
        if (below != nullptr) CHECK(put_back(*ws, made).empty());
        put(ws->dir() / ".git/hooks/pre-commit", "exit 0\n", 0755);
        put(ws->dir() / ".git/index", "mine\n");
        CHECK_FALSE(put_back(*ws, made).empty());
        CHECK(slurp(ws->dir() / ".git/hooks/pre-commit") == "#!/bin/sh\n");
        CHECK_FALSE(fs::exists(ws->dir() / ".git/index"));
        ws->close();
      }
    }
  }
}

}  // namespace
}  // namespace proctor
