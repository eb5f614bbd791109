// What an agent may leave in a workspace, and what a hostile repository or patch may hold.
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <thread>

#include "tests/integration/workspace/fixture.h"
#include "worker/git/object_db.h"

namespace proctor {
namespace {

using namespace testing;

struct Fixture {
  TempDir temp = temp_dir();
  Repo repo = make_repo(temp.path() / "repo");
  fs::path outside = temp.path() / "outside";
  Fixture() { put(outside / "victim", "untouched\n"); }
  void check_outside() const {
    CHECK(tree_of(outside) == std::map<std::string, std::string>{{"victim", "file untouched\n"}});
  }
};

std::string new_file_patch(const std::string& path) {
  return "diff --git a/" + path + " b/" + path + "\nnew file mode 100644\n--- /dev/null\n+++ b/" +
         path + "\n@@ -0,0 +1 @@\n+evil\n";
}

TEST_SUITE("workspace") {
  TEST_CASE("nothing the agent planted in .git or attributes is executed") {
    Fixture f;
    for (const WorkspaceKind kind : kinds(f.temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(f.temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, f.repo.pinned());
      auto ws = create(*store, snapshot, "a");
      const fs::path dir = ws->dir();
      const std::string mark = (f.temp.path() / "executed").string();
      const std::string run = "touch " + mark + " #";
      for (const char* key : {"core.fsmonitor", "filter.evil.clean", "filter.evil.smudge",
                              "filter.evil.process", "diff.evil.textconv", "diff.evil.command",
                              "diff.external", "core.pager", "merge.evil.driver", "core.editor"}) {
        git(dir, {"config", key, run});
      }
      git(dir, {"config", "core.hooksPath", "hooks"});
      for (const char* hook :
           {"post-checkout", "pre-commit", "post-index-change", "applypatch-msg"}) {
        put(dir / "hooks" / hook, "#!/bin/sh\n" + run + "\n", 0755);
        put(dir / ".git/hooks" / hook, "#!/bin/sh\n" + run + "\n", 0755);
      }
      put(dir / ".gitattributes", "* filter=evil diff=evil merge=evil text eol=crlf ident\n");
      put(dir / "src/main.py", "$Id$\nnew\n");
      const Patch patch = extract(*ws);
      REQUIRE(ws->restore({"tests/**"}).ok());
      auto same = create(*store, snapshot, "b");
      fs::remove_all(same->dir() / ".git");
      fs::copy(dir / ".git", same->dir() / ".git", fs::copy_options::recursive);
      REQUIRE(same->apply(patch.diff).ok());
      CHECK(slurp(same->dir() / "src/main.py") == "$Id$\nnew\n");
      CHECK_FALSE(fs::exists(mark));
      // A .git that is a link out of the workspace, and one that is gone.
      fs::remove_all(dir / ".git");
      CHECK(extract(*ws).diff == patch.diff);
      fs::create_directory_symlink(f.outside, dir / ".git");
      CHECK(extract(*ws).diff == patch.diff);
      f.check_outside();
    }
  }

  TEST_CASE("devices and sockets and set-id files and nested repositories are reported") {
    Fixture f;
    for (const WorkspaceKind kind : kinds(f.temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(f.temp.path() / "store", kind);
      auto ws = create(*store, snapshot_of(*store, f.repo.pinned()), "a");
      const fs::path dir = ws->dir();
      REQUIRE(::mkfifo((dir / "src/fifo").c_str(), 0600) == 0);
      const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string path = (dir / "sock").string();
      REQUIRE(path.size() < sizeof address.sun_path);
      std::copy(path.begin(), path.end(), static_cast<char*>(address.sun_path));
      REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
      ::close(fd);
      put(dir / "suid", "x\n");
      ::chmod((dir / "suid").c_str(), 04755);
      put(dir / "nested/.git/config", "[core]\n");
      put(dir / "nested/ok", "ok\n");
      if (::geteuid() == 0) REQUIRE(::mknod((dir / "dev").c_str(), S_IFCHR | 0600, 0x0103) == 0);
      const Patch patch = extract(*ws);
      std::vector<std::string> want = {"nested/.git", "sock", "src/fifo", "suid"};
      if (::geteuid() == 0) want.insert(want.begin(), "dev");
      CHECK(patch.refused == want);
      CHECK(patch.paths == std::vector<std::string>{"nested/ok", "suid"});
      CHECK(patch.diff.find("new file mode 100755") != std::string::npos);
    }
  }

  TEST_CASE("what is written into a set-id file is the agent's work all the same") {
    Fixture f;
    for (const WorkspaceKind kind : kinds(f.temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(f.temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, f.repo.pinned());
      auto ws = create(*store, snapshot, "a");
      const fs::path file = ws->dir() / "src/main.py";
      put(file, "mended\n");
      REQUIRE(::chmod(file.c_str(), 06755) == 0);
      const Patch patch = extract(*ws);
      CHECK(patch.refused == std::vector<std::string>{"src/main.py"});
      CHECK(patch.paths == std::vector<std::string>{"src/main.py"});
      auto fresh = create(*store, snapshot, "b");
      REQUIRE(fresh->apply(patch.diff).ok());
      CHECK(slurp(fresh->dir() / "src/main.py") == "mended\n");
      struct stat st {};
      REQUIRE(::stat((fresh->dir() / "src/main.py").c_str(), &st) == 0);
      CHECK((st.st_mode & (S_ISUID | S_ISGID)) == 0);
    }
  }

  TEST_CASE("symlinks never lead out of a workspace") {
    Fixture f;
    for (const WorkspaceKind kind : kinds(f.temp.path())) {
      CAPTURE(to_string(kind));
      auto store = open_store(f.temp.path() / "store", kind);
      const Snapshot snapshot = snapshot_of(*store, f.repo.pinned());
      auto ws = create(*store, snapshot, "a");
      const fs::path dir = ws->dir();
      fs::create_directory_symlink(f.outside, dir / "out");
      fs::remove_all(dir / "tests");
      fs::create_directory_symlink(f.outside, dir / "tests");
      const Patch patch = extract(*ws);
      CHECK(patch.diff.find("untouched") == std::string::npos);
      CHECK(ws->put_file("out/victim", "evil", 0644).error().code == Errc::kInvalid);
      CHECK(ws->put_file("out/new", "evil", 0644).error().code == Errc::kInvalid);
      CHECK(ws->apply(new_file_patch("out/new")).error().code == Errc::kInvalid);
      f.check_outside();
      REQUIRE(ws->restore({"tests/**"}).ok());
      CHECK(slurp(dir / "tests/test_a.py") == "assert True\n");
      CHECK(fs::is_directory(fs::symlink_status(dir / "tests")));
      f.check_outside();
      // A target that is itself a link is replaced and not written through.
      fs::create_symlink(f.outside / "victim", dir / "pointer");
      REQUIRE(ws->put_file("pointer", "mine", 0644).ok());
      CHECK(slurp(dir / "pointer") == "mine");
      // One patch that plants a link and then writes through it.
      auto other = create(*store, snapshot, "b");
      const std::string plant =
          "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n"
          "@@ -0,0 +1 @@\n+" +
          f.outside.string() + "\n\\ No newline at end of file\n";
      CHECK_FALSE(other->apply(plant + new_file_patch("l/new")).ok());
      f.check_outside();
    }
  }

  // In a run nothing lives any more when a patch is made; should something do, then what it swaps
  // under our hands leads nowhere, and what comes out is a patch that applies, or an error.
  TEST_CASE("files that change while a patch is made give a patch that applies or an error") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const fs::path outside = temp.path() / "outside";
    put(outside / "main.py", "THE SECRET\n");
    put(outside / "deep/er/file.txt", "THE SECRET\n");
    for (const WorkspaceKind kind : kinds(temp.path())) {
      for (const bool layered : {false, true}) {
        CAPTURE(to_string(kind));
        CAPTURE(layered);
        auto store = open_store(temp.path() / "store", kind);
        const Snapshot snapshot = snapshot_of(*store, repo.pinned());
        std::optional<SetupLayer> layer;
        if (layered) {
          auto maker = create(*store, snapshot, "maker");
          put(maker->dir() / "src/made.py", "made\n");
          REQUIRE(make_dirs(temp.path() / "home").ok());
          auto kept = keep_setup(*store, std::move(maker), temp.path() / "home",
                                 sha256(std::string(to_string(kind)) + "toctou"));
          REQUIRE(kept.ok());
          layer = *kept;
        }
        auto ws = create(*store, snapshot, "agent", layer ? &*layer : nullptr);
        const fs::path dir = ws->dir();
        put(dir / "src/main.py", "mine\n");
        std::atomic<std::uint64_t> turns{0};
        std::jthread swapper([&](const std::stop_token& stop) {
          std::error_code ec;
          while (!stop.stop_requested()) {
            fs::remove(dir / "f", ec);
            fs::create_symlink(outside / "main.py", dir / "f", ec);
            fs::remove(dir / "f", ec);
            ::mkfifo((dir / "f").c_str(), 0600);
            fs::remove(dir / "f", ec);
            (void)write_file(dir / "f", std::string(turns % 70'000, 'x'), Durability::kLazy).ok();
            fs::resize_file(dir / "f", 3, ec);
            fs::remove_all(dir / "d", ec);
            fs::create_directory_symlink(outside, dir / "d", ec);
            fs::remove(dir / "d", ec);
            fs::create_directories(dir / "d/deep/er", ec);
            (void)write_file(dir / "d/deep/er/file.txt", "mine\n", Durability::kLazy).ok();
            fs::remove_all(dir / "d", ec);
            fs::rename(dir / "src/main.py", dir / "src/other.py", ec);
            fs::create_symlink(outside / "main.py", dir / "src/main.py", ec);
            fs::remove(dir / "src/main.py", ec);
            fs::rename(dir / "src/other.py", dir / "src/main.py", ec);
            ++turns;
          }
        });
        std::uint64_t patches = 0, errors = 0;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(180);
        while ((turns < 50 || patches + errors < 60) && std::chrono::steady_clock::now() < until) {
          const auto patch = ws->extract_patch(std::size_t{1} << 20);
          const auto changed = ws->changed_under({"**"});
          if (!patch.ok()) {
            ++errors;
            continue;
          }
          ++patches;
          CHECK(patch->diff.find("THE SECRET") == std::string::npos);
          auto fresh = create(*store, snapshot, "fresh");
          const auto applied = fresh->apply(patch->diff);
          CHECK_MESSAGE(applied.ok(), (applied.ok() ? "" : applied.error().detail + patch->diff));
        }
        swapper.request_stop();
        swapper.join();
        MESSAGE("patches: " << patches << ", errors: " << errors << ", turns: " << turns.load());
        CHECK(50 <= turns);
        CHECK(60 <= patches + errors);
        CHECK(slurp(outside / "main.py") == "THE SECRET\n");
        CHECK(slurp(outside / "deep/er/file.txt") == "THE SECRET\n");
        // Quiet again: what is there.
        CHECK(extract(*ws).diff.find("mine") != std::string::npos);
      }
    }
  }

  TEST_CASE("unsafe paths are refused by every way in") {
    Fixture f;
    auto store = open_store(f.temp.path() / "store");
    auto ws = create(*store, snapshot_of(*store, f.repo.pinned()), "a");
    const auto before = tree_of(ws->dir());
    for (const std::string path : {"../evil", "/tmp/evil", "a/../../evil", ".git/hooks/pre-commit",
                                   ".GIT/config", "a/../.git/config"}) {
      CAPTURE(path);
      CHECK_FALSE(ws->put_file(path, "evil", 0644).ok());
      CHECK_FALSE(ws->apply(new_file_patch(path)).ok());
    }
    CHECK_FALSE(ws->put_file("", "evil", 0644).ok());
    CHECK_FALSE(ws->put_file("a//b", "evil", 0644).ok());
    CHECK(tree_of(ws->dir()) == before);
    CHECK_FALSE(fs::exists(f.temp.path() / "store/workspaces/evil"));
  }

  TEST_CASE("a repository whose tree would escape is refused") {
    Fixture f;
    auto db = ObjectDb::open({}, f.repo.dir / ".git/objects");
    REQUIRE(db.ok());
    const ObjectId blob = *db->write(ObjectType::kBlob, "evil\n");
    struct Row {
      const char* what;
      std::vector<GitTreeEntry> entries;
    };
    const Row rows[] = {
        {"parent", {{git_mode::kBlob, "..", blob}}},
        {"git folder", {{git_mode::kBlob, ".git", blob}}},
        {"slash", {{git_mode::kBlob, "../../evil", blob}}},
        {"link and file of one name",
         {{git_mode::kSymlink, "a", blob},
          {git_mode::kTree, "a", *db->write_tree({{git_mode::kBlob, "b", blob}})}}},
    };
    auto store = open_store(f.temp.path() / "store");
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const ObjectId tree = *db->write_tree(row.entries);
      const std::string text =
          "tree " + tree.hex() + "\nauthor a <a@a> 1 +0000\ncommitter a <a@a> 1 +0000\n\nx\n";
      const ObjectId commit = *db->write(ObjectType::kCommit, text);
      git(f.repo.dir, {"update-ref", "refs/heads/evil", commit.hex()});
      Repository r = f.repo.pinned();
      r.commit = commit.hex();
      const auto got = store->snapshot(r, "/");
      REQUIRE_FALSE(got.ok());
      CHECK(got.error().code == Errc::kInvalid);
      CHECK_FALSE(fs::exists(f.temp.path() / "store/evil"));
    }
  }
}

}  // namespace
}  // namespace proctor
