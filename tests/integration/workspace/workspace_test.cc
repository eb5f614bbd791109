#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <sstream>

#include "tests/integration/workspace/fixture.h"

namespace proctor {
namespace {

using namespace testing;

TEST_SUITE("workspace") {
  TEST_CASE("a snapshot is the commit's tree byte for byte") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    auto store = open_store(temp.path() / "store");
    const Snapshot snapshot = snapshot_of(*store, repo.pinned());
    CHECK(snapshot.commit == repo.commit);
    CHECK(snapshot.tree == git(repo.dir, {"rev-parse", repo.commit + "^{tree}"}));
    auto want = tree_of(repo.dir);
    want.erase("answer.txt");
    // The blob is what git stored ("* text=auto" took the CRs); .gitattributes asks for CRLF on
    // checkout, which a snapshot must not do.
    want["crlf.txt"] = "file a\nb\n";
    CHECK(tree_of(snapshot.tree_dir) == want);
    CHECK_FALSE(fs::exists(snapshot.tree_dir / ".git"));
  }

  TEST_CASE("lock files are found wherever they lie, sorted, and a link or a likeness is none") {
    const TempDir temp = temp_dir();
    const fs::path dir = temp.path() / "repo";
    REQUIRE(make_dirs(dir).ok());
    git(dir, {"init", "-q"});
    put(dir / "go.sum", "root\n");
    put(dir / "web/app/yarn.lock", "inner\n", 0755);
    put(dir / "a/b/c/d/Cargo.lock", "deep\n");
    put(dir / "web/yarn.lock.orig", "none\n");
    put(dir / "poetry.lock/inner", "a folder\n");
    fs::create_symlink("../go.sum", dir / "web/go.sum");
    git(dir, {"add", "-A"});
    git(dir, {"commit", "-qm", "first"});
    const Repo repo{dir, git(dir, {"rev-parse", "HEAD"})};
    const std::map<std::string, std::string> expected = {
        {"a/b/c/d/Cargo.lock", sha256("deep\n").hex()},
        {"go.sum", sha256("root\n").hex()},
        {"web/app/yarn.lock", sha256("inner\n").hex()}};
    for (int life = 0; life < 2; ++life) {  // made, and found
      const auto store = open_store(temp.path() / "store");
      CHECK(snapshot_of(*store, repo.pinned()).lockfiles == expected);
    }
    // A store of before there was a list is made again.
    for (const auto& entry : fs::recursive_directory_iterator(temp.path() / "store"))
      if (entry.path().filename() == "lockfiles") fs::remove(entry.path());
    CHECK(
        open_store(temp.path() / "store")->snapshot(repo.pinned(), temp.path()).value().lockfiles ==
        expected);

    for (int i = 0; i < 1001; ++i) put(dir / ("n" + std::to_string(i)) / "uv.lock", "x");
    git(dir, {"add", "-A"});
    git(dir, {"commit", "-qm", "many"});
    const Repo many{dir, git(dir, {"rev-parse", "HEAD"})};
    const auto listed = snapshot_of(*open_store(temp.path() / "store"), many.pinned()).lockfiles;
    CHECK(listed.size() == Snapshot::kLockfilesListed);
    CHECK(listed.begin()->first == "a/b/c/d/Cargo.lock");
    CHECK_FALSE(listed.contains("web/app/yarn.lock"));

    for (int i = 0; i < 400; ++i)
      put(dir / "b" / std::string(200, 'x') / std::string(200, 'y') / std::string(200, 'z') /
              std::string(200, static_cast<char>('a' + i % 26)) / std::to_string(i) / "uv.lock",
          "x");
    git(dir, {"add", "-A"});
    git(dir, {"commit", "-qm", "long"});
    const Repo deep{dir, git(dir, {"rev-parse", "HEAD"})};
    const std::size_t some =
        snapshot_of(*open_store(temp.path() / "store"), deep.pinned()).lockfiles.size();
    CHECK(200 < some);
    CHECK(some < 400);
  }

  TEST_CASE("an unexpected tree id is refused by name") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    auto store = open_store(temp.path() / "store");
    Repository r = repo.pinned();
    r.tree = std::string(40, 'a');
    const auto got = store->snapshot(r, "/");
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().code == Errc::kInvalid);
    CHECK(got.error().detail.find("expected aaaa") != std::string::npos);
    r.tree = git(repo.dir, {"rev-parse", repo.commit + "^{tree}"});
    CHECK(store->snapshot(r, "/").ok());
  }

  TEST_CASE("the agent's repository has one commit and is clean") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto ws = create(*store, snapshot, "a");
      CHECK(ws->kind() == kind);
      CHECK(git(ws->dir(), {"status", "--porcelain"}) == "");
      CHECK(git(ws->dir(), {"rev-list", "--all", "--count"}) == "1");
      CHECK(git(ws->dir(), {"rev-parse", "HEAD^{tree}"}) == snapshot.tree);
      git(ws->dir(), {"fsck", "--strict", "--full"});
      put(ws->dir() / "README.md", "changed\n");
      CHECK(git(ws->dir(), {"status", "--porcelain"}) == " M README.md");
      git(ws->dir(), {"commit", "-qam", "mine"});
      CHECK(git(ws->dir(), {"rev-list", "--all", "--count"}) == "2");
      CHECK(extract(*ws).paths == std::vector<std::string>{"README.md"});
      auto other = create(*store, snapshot, "b");
      CHECK(git(other->dir(), {"rev-list", "--all", "--count"}) == "1");
    }
  }

  TEST_CASE("whoever is shown a workspace reads nowhere on the host its layers lie") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      if (kind != WorkspaceKind::kOverlay && kind != WorkspaceKind::kUserOverlay) continue;
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      std::string options;
      for (std::istringstream lines(slurp("/proc/self/mountinfo")); std::getline(lines, options);)
        if (options.find(" " + ws->dir().string() + " ") != std::string::npos) break;
      const std::size_t at = options.find(" - overlay ");
      REQUIRE_MESSAGE(at != std::string::npos, options);
      CHECK_MESSAGE(options.find(temp.path().string(), at) == std::string::npos, options);
    }
  }

  TEST_CASE("no later commit leaks into a workspace") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      CHECK(git(dir, {"remote"}) == "");
      CHECK(git(dir, {"tag"}) == "");
      CHECK(git(dir, {"reflog", "--all"}) == "");
      CHECK_FALSE(fs::exists(dir / ".git/objects/info/alternates"));
      CHECK_FALSE(fs::exists(dir / ".git/logs"));
      CHECK_FALSE(fs::exists(dir / ".git/packed-refs"));
      // Every object there is, reachable or not, and the name of the commit itself.
      const std::string all = git(dir, {"cat-file", "--batch", "--batch-all-objects"});
      CHECK(all.find("hello\nworld") != std::string::npos);
      CHECK(all.find("the secret answer line") == std::string::npos);
      CHECK(all.find("answer.txt") == std::string::npos);
      CHECK(all.find(repo.commit) == std::string::npos);
    }
  }

  TEST_CASE("an unchanged workspace has an empty patch and build products stay out") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      CHECK(extract(*ws).diff.empty());
      put(ws->dir() / "build/out.o", "x");
      put(ws->dir() / "src/__pycache__/main.cpython-311.pyc", "x");
      put(ws->dir() / "src/some.log", "x");
      put(ws->dir() / "src/keep.log", "kept\n");
      put(ws->dir() / "node_modules/a/index.js", "x");
      // The agent's own ignore rules decide nothing.
      put(ws->dir() / ".gitignore", "*\n");
      const Patch patch = extract(*ws);
      CHECK(patch.paths == std::vector<std::string>{".gitignore", "src/keep.log"});
      CHECK(patch.files == 2);
      CHECK(patch.insertions == 2);
      CHECK(patch.deletions == 3);
      CHECK(patch.left_out == std::vector<std::string>{"build/", "node_modules/",
                                                       "src/__pycache__/", "src/some.log"});
      CHECK(patch.left_out_count == 4);
    }
  }

  TEST_CASE("the contract says which ignored files are part of a patch") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto ws = create(*store, snapshot, "a");
      put(ws->dir() / "build/out.o", "x");
      put(ws->dir() / "build/dist/app.js", "app\n");
      put(ws->dir() / "node_modules/a/index.js", "x");
      put(ws->dir() / "node_modules/a/__pycache__/x.pyc", "x");
      put(ws->dir() / "some.log", "x\n");
      const auto with = [&](const std::vector<std::string>& kept) {
        auto patch = ws->extract_patch(std::size_t{64} << 20, kept);
        REQUIRE(patch.ok());
        return *patch;
      };
      const Patch one = with({"build/dist/**"});
      CHECK(one.paths == std::vector<std::string>{"build/dist/app.js"});
      CHECK(one.left_out == std::vector<std::string>{"build/out.o", "node_modules/", "some.log"});
      // Inside of a folder that is looked into for one file, the others stay what they are.
      const Patch file = with({"**/index.js"});
      CHECK(file.paths == std::vector<std::string>{"node_modules/a/index.js"});
      const Patch all = with({"**"});
      CHECK(all.paths == std::vector<std::string>{"build/dist/app.js", "build/out.o",
                                                  "node_modules/a/__pycache__/x.pyc",
                                                  "node_modules/a/index.js", "some.log"});
      CHECK(all.left_out.empty());
      auto fresh = create(*store, snapshot, "b");
      REQUIRE(fresh->apply(all.diff).ok());
      CHECK(slurp(fresh->dir() / "build/dist/app.js") == "app\n");
    }
  }

  TEST_CASE("a patch that is too large is an error and not a cut patch") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    auto store = open_store(temp.path() / "store");
    auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
    put(ws->dir() / "big", std::string(100'000, 'x') + "\n");
    const auto patch = ws->extract_patch(1000);
    REQUIRE_FALSE(patch.ok());
    CHECK(patch.error().code == Errc::kExhausted);
  }

  TEST_CASE("a patch that does not apply changes nothing and names the place") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto ws = create(*store, snapshot, "a");
      put(ws->dir() / "README.md", "hello\nthere\n");
      put(ws->dir() / "src/main.py", "print(1)\nprint(2)\nprint(4)\n");
      const Patch patch = extract(*ws);
      auto other = create(*store, snapshot, "b");
      put(other->dir() / "src/main.py", "something else\n");
      const auto before = tree_of(other->dir());
      const auto s = other->apply(patch.diff);
      REQUIRE_FALSE(s.ok());
      CHECK(s.error().code == Errc::kInvalid);
      CHECK(s.error().detail.find("src/main.py:1") != std::string::npos);
      CHECK(tree_of(other->dir()) == before);
      CHECK_FALSE(other->apply("this is not a patch\n").ok());
      CHECK(other->apply("").ok());
    }
  }

  TEST_CASE("protected files are put and restored whatever the agent left there") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, repo.pinned());
      auto ws = create(*store, snapshot, "a");
      const fs::path dir = ws->dir();
      put(dir / "tests/test_a.py", "assert False\n");
      put(dir / "tests/extra/conftest.py", "x\n");
      put(dir / "tests/__pycache__/test_a.cpython-311.pyc", "planted");
      put(dir / "tests/run.log", "planted");
      fs::remove_all(dir / "tests/data");
      fs::create_symlink("/etc", dir / "tests/data");
      ::chmod((dir / "run.sh").c_str(), 0644);
      put(dir / "src/main.py", "mine\n");
      REQUIRE(::mkfifo((dir / "tests/fifo").c_str(), 0600) == 0);
      const auto changed = ws->restore({"tests/**", "*.sh"});
      REQUIRE_MESSAGE(changed.ok(), (changed.ok() ? "" : changed.error().detail));
      CHECK(*changed ==
            std::vector<std::string>{"run.sh", "tests/__pycache__/test_a.cpython-311.pyc",
                                     "tests/data", "tests/data/x.txt", "tests/extra/conftest.py",
                                     "tests/fifo", "tests/run.log", "tests/test_a.py"});
      CHECK(extract(*ws).paths == std::vector<std::string>{"src/main.py"});
      CHECK_FALSE(fs::exists(dir / "tests/__pycache__/test_a.cpython-311.pyc"));
      CHECK(ws->restore({"tests/**"})->empty());

      fs::remove(dir / "run.sh");
      put(dir / "run.sh/in/the/way", "x");
      CHECK(ws->put_file("run.sh", "#!/bin/sh\n", 0755).ok());
      CHECK(slurp(dir / "run.sh") == "#!/bin/sh\n");
      CHECK(ws->put_file("a/new/folder/file", "bytes", 0644).ok());
      CHECK(slurp(dir / "a/new/folder/file") == "bytes");
    }
  }

  TEST_CASE("files are put back by their names, however these read as globs") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, repo.pinned()), "a");
      const fs::path dir = ws->dir();
      const std::vector<std::string> names = {"*",     "**",     "README.md", "[a]",         "a\\b",
                                              "empty", "run.sh", "src/*",     "src/dangling"};
      for (const char* name : {"*", "**", "README.md", "[a]", "a\\b", "src/*"})
        put(dir / name, "x\n");
      fs::remove(dir / "empty");
      put(dir / "empty/in/the/way", "x\n");
      REQUIRE(::chmod((dir / "run.sh").c_str(), 0644) == 0);
      fs::remove(dir / "src/dangling");
      put(dir / "a", "mine\n");
      put(dir / "src/main.py", "mine\n");
      put(dir / "tests/test_a.py", "mine\n");
      const auto changed = ws->restore({}, names);
      REQUIRE_MESSAGE(changed.ok(), (changed.ok() ? "" : changed.error().detail));
      CHECK(*changed == names);
      CHECK(slurp(dir / "README.md") == "hello\nworld\n");
      CHECK(extract(*ws).paths == std::vector<std::string>{"a", "src/main.py", "tests/test_a.py"});
      CHECK(ws->restore({"tests/**"}, names).value() ==
            std::vector<std::string>{"tests/test_a.py"});
      CHECK(extract(*ws).paths == std::vector<std::string>{"a", "src/main.py"});
      CHECK(ws->restore({}, {})->empty());
    }
  }

  TEST_CASE("submodules come at their recorded commits as plain files") {
    const TempDir temp = temp_dir();
    const Repo lib = make_repo(temp.path() / "lib");
    const fs::path super = temp.path() / "super";
    REQUIRE(make_dirs(super).ok());
    git(super, {"init", "-q"});
    put(super / "own.txt", "own\n");
    git(super, {"submodule", "--quiet", "add", "../lib", "third/lib"});
    git(super / "third/lib", {"checkout", "-q", lib.commit});
    git(super, {"add", "-A"});
    git(super, {"commit", "-qm", "with lib"});
    Repository r;
    r.source = "super";
    r.commit = git(super, {"rev-parse", "HEAD"});
    for (const WorkspaceKind kind : kinds(temp.path())) {
      auto store = open_store(temp.path() / "store", kind);
      r.submodules = true;
      auto full = store->snapshot(r, temp.path());
      REQUIRE_MESSAGE(full.ok(), (full.ok() ? "" : full.error().detail));
      CHECK(full->tree == git(super, {"rev-parse", "HEAD^{tree}"}));
      const std::map<std::string, std::string> recorded = {{"third/lib", lib.commit}};
      CHECK(full->submodules == recorded);
      CHECK(open_store(temp.path() / "store", kind)->snapshot(r, temp.path()).value().submodules ==
            recorded);  // of the tree that is there already
      auto ws = create(*store, *full, "full");
      CHECK(slurp(ws->dir() / "third/lib/README.md") == "hello\nworld\n");
      CHECK_FALSE(fs::exists(ws->dir() / "third/lib/answer.txt"));
      CHECK(git(ws->dir(), {"status", "--porcelain"}) == "");
      put(ws->dir() / "third/lib/README.md", "x\n");
      CHECK(extract(*ws).paths == std::vector<std::string>{"third/lib/README.md"});
      r.submodules = false;
      auto bare = create(*store,
                         snapshot_of(*store,
                                     [&] {
                                       Repository absolute = r;
                                       absolute.source = super.string();
                                       return absolute;
                                     }()),
                         "bare");
      CHECK(fs::is_empty(bare->dir() / "third/lib"));
      CHECK(git(bare->dir(), {"status", "--porcelain"}) == "");
      CHECK(extract(*bare).diff.empty());
      put(bare->dir() / "third/lib/x", "x");
      CHECK(extract(*bare).refused == std::vector<std::string>{"third/lib/x"});
    }
  }

  TEST_CASE("files under LFS come with their content, and a change to one is a patch") {
    const TempDir temp = temp_dir();
    const fs::path repo = temp.path() / "repo";
    Repository r;
    r.source = repo.string();
    r.commit = make_lfs_repo(repo);
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, r);
      CHECK(snapshot.tree == git(repo, {"rev-parse", "HEAD^{tree}"}));
      auto ws = create(*store, snapshot, "a");
      CHECK(slurp(ws->dir() / "data/model.bin") == kLfsContent);
      CHECK(slurp(ws->dir() / "plain.txt") == "plain\n");
      CHECK(git(ws->dir(), {"status", "--porcelain"}) == "");
      put(ws->dir() / "data/model.bin", "other content\n");
      const Patch patch = extract(*ws);
      CHECK(patch.paths == std::vector<std::string>{"data/model.bin"});
      auto fresh = create(*store, snapshot, "b");
      REQUIRE(fresh->apply(patch.diff).ok());
      CHECK(slurp(fresh->dir() / "data/model.bin") == "other content\n");
    }
  }

  TEST_CASE("LFS content that cannot be had is an error that names the files") {
    const TempDir temp = temp_dir();
    const fs::path repo = temp.path() / "repo";
    Repository r;
    r.source = repo.string();
    r.commit = make_lfs_repo(repo);
    SUBCASE("git-lfs is not installed") {
      const fs::path bin = temp.path() / "bin";
      REQUIRE(make_dirs(bin).ok());
      fs::create_symlink("/usr/bin/git", bin / "git");
      const std::string path = ::getenv("PATH");
      REQUIRE(::setenv("PATH", bin.c_str(), 1) == 0);
      auto store = open_store(temp.path() / "store", WorkspaceKind::kCopy);
      const auto got = store->snapshot(r, "/");
      REQUIRE(::setenv("PATH", path.c_str(), 1) == 0);
      REQUIRE_FALSE(got.ok());
      CHECK(got.error().code == Errc::kUnavailable);
      CHECK(got.error().detail.find("LFS content of data/model.bin") != std::string::npos);
      CHECK(got.error().detail.find("git-lfs is not installed") != std::string::npos);
    }
    SUBCASE("the server does not have it") {
      REQUIRE(remove_tree(repo / ".git/lfs").ok());
      auto store = open_store(temp.path() / "store", WorkspaceKind::kCopy);
      const auto got = store->snapshot(r, "/");
      REQUIRE_FALSE(got.ok());
      CHECK(got.error().code == Errc::kUnavailable);
      CHECK(got.error().detail.find("data/model.bin") != std::string::npos);
    }
    for (const auto& tree : fs::directory_iterator(temp.path() / "store/trees"))
      CHECK(tree.path().extension() == ".lock");  // nothing half made is left
  }

  TEST_CASE("a damaged mirror is set aside and fetched anew") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    (void)snapshot_of(*open_store(temp.path() / "store", WorkspaceKind::kCopy), repo.pinned());
    fs::path pack;
    for (const auto& file : fs::recursive_directory_iterator(temp.path() / "store/mirrors"))
      if (file.path().extension() == ".pack") pack = file.path();
    REQUIRE_FALSE(pack.empty());
    REQUIRE(remove_tree(temp.path() / "store/trees").ok());  // else nobody reads the mirror
    std::string bytes = slurp(pack);
    SUBCASE("emptied, as after a power failure") {
      bytes.clear();
    }
    SUBCASE("one bit in the middle") {
      bytes[bytes.size() / 2] ^= 4;
    }
    SUBCASE("cut") {
      bytes.resize(bytes.size() * 3 / 4);
    }
    fs::permissions(pack, fs::perms::owner_all);
    put(pack, bytes);
    const Snapshot snapshot =
        snapshot_of(*open_store(temp.path() / "store", WorkspaceKind::kCopy), repo.pinned());
    CHECK(slurp(snapshot.tree_dir / "README.md") == "hello\nworld\n");
  }

  TEST_CASE("eight processes that want one snapshot fetch and check out once") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
      const pid_t pid = ::fork();
      REQUIRE(0 <= pid);
      if (pid == 0) {
        WorkspaceStoreOptions options;
        options.root = temp.path() / "store";
        options.owner = "w" + std::to_string(i);
        auto store = open_workspace_store(options);
        const auto attempt = [&]() -> Status {
          PROCTOR_TRY(const Snapshot snapshot, (*store)->snapshot(repo.pinned(), "/"));
          PROCTOR_TRY(const auto workspace, (*store)->create(snapshot, "x"));
          return ok_status();
        };
        const Status done = store.ok() ? attempt() : Status(store.error());
        if (!done.ok()) std::fprintf(stderr, "child %d: %s\n", i, done.error().detail.c_str());
        if (done.ok()) store.value().reset();
        ::_exit(done.ok() ? 0 : 1);
      }
      children.push_back(pid);
    }
    for (const pid_t pid : children) {
      int status = -1;
      REQUIRE(::waitpid(pid, &status, 0) == pid);
      CHECK(status == 0);
    }
    std::size_t fetches = 0;
    for (const auto& entry : fs::directory_iterator(temp.path() / "store/mirrors")) {
      if (!fs::exists(entry.path() / "fetches.log")) continue;
      const std::string log = slurp(entry.path() / "fetches.log");
      fetches += static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
    }
    CHECK(fetches == 1);
  }

  TEST_CASE("what a killed life left is cleaned up and a living sibling is not") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      CAPTURE(to_string(kind));
      const fs::path root = temp.path() / to_string(kind);
      auto sibling = open_store(root, kind);
      const Snapshot snapshot = snapshot_of(*sibling, repo.pinned());
      auto living = create(*sibling, snapshot, "alive");
      int ready[2];
      REQUIRE(::pipe(ready) == 0);
      const pid_t pid = ::fork();
      REQUIRE(0 <= pid);
      if (pid == 0) {
        WorkspaceStoreOptions options{root, "w1", kind, ""};
        auto store = open_workspace_store(options);
        auto ws = (*store)->create(snapshot, "dead");
        (void)write_file((*ws)->dir() / "left", "x", Durability::kLazy, 0400);
        const std::string where = (*ws)->dir().string() + "\n";
        (void)!::write(ready[1], where.data(), where.size());
        while (true) ::pause();
      }
      std::string where;
      for (char c = 0; ::read(ready[0], &c, 1) == 1 && c != '\n';) where += c;
      REQUIRE(fs::exists(fs::path(where) / "left"));
      CHECK(sibling->clean_up().ok());
      CHECK(fs::exists(fs::path(where) / "left"));  // still alive
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      auto next = open_store(root, kind);
      CHECK(next->clean_up().ok());
      CHECK_FALSE(fs::exists(where));
      CHECK_FALSE(fs::exists(fs::path(where).parent_path()));
      CHECK(fs::exists(living->dir() / "README.md"));
      ::close(ready[0]);
      ::close(ready[1]);
    }
  }

  TEST_CASE("a destroyed workspace leaves nothing even when its files were read-only") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      fs::path dir;
      {
        auto store = open_store(temp.path() / "store", kind);
        const Snapshot snapshot = snapshot_of(*store, repo.pinned());
        auto ws = create(*store, snapshot, "a");
        if (!is_overlay(kind)) CHECK_FALSE(store->create(snapshot, "a").ok());
        CHECK_FALSE(store->create(snapshot, "../a").ok());
        dir = ws->dir();
        put(dir / "locked/file", "x", 0400);
        ::chmod((dir / "locked").c_str(), 0500);
        ::chmod((dir / "src").c_str(), 0);
        const int busy = ::open((dir / "README.md").c_str(), O_RDONLY | O_CLOEXEC);
        REQUIRE(0 <= busy);
        ws.reset();
        ::close(busy);
        CHECK_FALSE(fs::exists(dir.parent_path()));
        CHECK(slurp(snapshot.tree_dir / "README.md") == "hello\nworld\n");
      }
      CHECK(slurp("/proc/mounts").find(dir.string()) == std::string::npos);
      CHECK_FALSE(fs::exists(dir.parent_path().parent_path()));
    }
  }
}

}  // namespace
}  // namespace proctor
