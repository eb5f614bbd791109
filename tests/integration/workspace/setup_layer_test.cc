// What setup left, kept for other workspaces: whole or not at all, and never written again.
#include <sys/wait.h>

#include <csignal>

#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/cache.h"

namespace proctor {
namespace {

using namespace testing;

struct Scene {
  explicit Scene(WorkspaceKind kind) : store(open_store(temp.path() / "store", kind)) {
    snapshot = snapshot_of(*store, make_repo(temp.path() / "repo").pinned());
  }
  fs::path home(const std::string& name) const {
    const fs::path dir = temp.path() / name;
    REQUIRE(make_dirs(dir).ok());
    return dir;
  }
  SetupLayer layer(const Digest& key) {
    auto ws = create(*store, snapshot, "setup");
    put(ws->dir() / "build/lib.o", "object\n");
    put(ws->dir() / "made.txt", "made\n");
    fs::remove(ws->dir() / "crlf.txt");
    put(home("home") / ".cache/pip", "wheel\n");
    auto kept = keep_setup(*store, std::move(ws), home("home"), key);
    REQUIRE_MESSAGE(kept.ok(), (kept.ok() ? "" : kept.error().detail));
    return *kept;
  }
  TempDir temp = temp_dir();
  std::unique_ptr<WorkspaceStore> store;
  Snapshot snapshot;
};

const Digest kKey = sha256("a key");

TEST_SUITE("setup layer") {
  TEST_CASE("a layer is found by its key, with its home and what its maker said") {
    const TempDir probe = temp_dir();
    for (const WorkspaceKind kind : kinds(probe.path())) {
      CAPTURE(to_string(kind));
      Scene s(kind);
      CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
      const SetupLayer made = s.layer(kKey);
      const auto found = s.store->layers().find(kKey);
      REQUIRE(found.ok());
      CHECK(found->content == made.content);
      CHECK(slurp(found->home() / ".cache/pip") == "wheel\n");
      struct stat st {};
      REQUIRE(::stat(found->dir.parent_path().c_str(), &st) == 0);
      CHECK((st.st_mode & 0777U) == 0700);
      CHECK(s.store->layers().find(sha256("another")).error().code == Errc::kNotFound);
      auto ws = create(*s.store, s.snapshot, "a", &*found);
      CHECK(slurp(ws->dir() / "made.txt") == "made\n");
      CHECK_FALSE(fs::exists(ws->dir() / "crlf.txt"));
      put(ws->dir() / "made.txt", "spoilt\n");
      fs::remove_all(ws->dir() / "build");
      auto other = create(*s.store, s.snapshot, "b", &*found);
      CHECK(slurp(other->dir() / "made.txt") == "made\n");
      CHECK(slurp(other->dir() / "build/lib.o") == "object\n");
      // The same content, made anew: the same digest.
      CHECK(s.layer(sha256("once more")).content == made.content);
    }
  }

  TEST_CASE("one maker at a time, and half a layer is none") {
    const TempDir probe = temp_dir();
    for (const WorkspaceKind kind : kinds(probe.path())) {
      CAPTURE(to_string(kind));
      Scene s(kind);
      const pid_t maker = ::fork();
      if (maker == 0) {  // killed in the middle of its work, the lock in its hands
        const auto making = s.store->layers().begin(kKey);
        if (!making.ok() || !write_file(making->output() / "0.stdout", "x").ok() ||
            !make_dirs(making->output().parent_path() / "work").ok())
          ::_exit(1);
        ::raise(SIGSTOP);
        ::_exit(2);
      }
      int status = 0;
      REQUIRE(::waitpid(maker, &status, WUNTRACED) == maker);
      REQUIRE(WIFSTOPPED(status));
      CHECK(s.store->layers().begin(kKey).error().code == Errc::kConflict);
      CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
      ::kill(maker, SIGKILL);
      REQUIRE(::waitpid(maker, &status, 0) == maker);
      CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
      const fs::path half = s.temp.path() / "store/layers" / (kKey.hex() + ".new");
      CHECK(fs::exists(half));
      CHECK(make_room(s.temp.path() / "store", std::uint64_t{1} << 40).ok());
      CHECK_FALSE(fs::exists(half));
      CHECK(slurp(s.layer(kKey).work() / "made.txt") == "made\n");
      CHECK_FALSE(fs::exists(half));
    }
  }

  TEST_CASE("a layer of another boot, or one that cannot be read, is made again") {
    Scene s(WorkspaceKind::kCopy);
    const fs::path dir = s.layer(kKey).dir;
    put(dir / "boot", "another boot\n");
    CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
    CHECK(s.layer(kKey).dir == dir);
    // A worker of a later version may have written more.
    put(dir / "layer.json", "{\"later\": 1, " + slurp(dir / "layer.json").substr(1));
    CHECK(s.store->layers().find(kKey).ok());
    put(dir / "layer.json", "{}");
    CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
    CHECK(s.layer(kKey).dir == dir);
    CHECK(s.store->layers().find(kKey).ok());
  }

  TEST_CASE("what no layer can hold is refused, and everything stays where it was") {
    const TempDir probe = temp_dir();
    for (const WorkspaceKind kind : kinds(probe.path())) {
      CAPTURE(to_string(kind));
      Scene s(kind);
      const fs::path home = s.home("home");
      REQUIRE(::mkfifo((home / "pipe").c_str(), 0600) == 0);
      auto ws = create(*s.store, s.snapshot, "setup");
      put(ws->dir() / "made.txt", "made\n");
      CHECK(SetupMaking::keepable(ws->written().dir, home).error().code == Errc::kInvalid);
      const auto making = s.store->layers().begin(kKey);
      REQUIRE(making.ok());
      const fs::path work = ws->surrender().value();
      const auto kept = making->keep(work, home, SetupLayer{});
      REQUIRE_FALSE(kept.ok());
      CHECK(kept.error().code == Errc::kInvalid);
      CHECK(slurp(work / "made.txt") == "made\n");
      CHECK(fs::exists(home / "pipe"));
      CHECK(s.store->layers().find(kKey).error().code == Errc::kNotFound);
    }
  }

  TEST_CASE("layers count, and go when nobody uses them") {
    const TempDir probe = temp_dir();
    for (const WorkspaceKind kind : kinds(probe.path())) {
      CAPTURE(to_string(kind));
      Scene s(kind);
      const fs::path root = s.temp.path() / "store";
      std::optional<SetupLayer> layer = s.layer(kKey);
      auto ws = create(*s.store, s.snapshot, "a", &*layer);
      auto room = make_room(root, 0);
      REQUIRE(room.ok());
      CHECK(room->items == 3);  // mirror, tree, layer
      CHECK(room->in_use == 2);
      CHECK(room->removed == 1);
      CHECK(slurp(ws->dir() / "made.txt") == "made\n");
      layer.reset();
      CHECK(make_room(root, 0)->in_use == 2);  // the workspace's
      ws.reset();
      s.store.reset();
      CHECK(make_room(root, 0)->removed == 2);
      CHECK_FALSE(fs::exists(root / "layers" / kKey.hex()));
    }
  }

  TEST_CASE("below what was changed it lies as if it had been there before, or not at all") {
    const TempDir probe = temp_dir();
    for (const WorkspaceKind kind : kinds(probe.path())) {
      if (!is_overlay(kind)) continue;
      CAPTURE(to_string(kind));
      Scene s(kind);
      const SetupLayer layer = s.layer(kKey);
      auto ws = create(*s.store, s.snapshot, "patched");
      put(ws->dir() / "src/main.py", "patched\n");
      put(ws->dir() / "src/new.py", "new\n");
      fs::remove(ws->dir() / "run.sh");
      auto below = ws->lay_below(layer);
      REQUIRE(below.ok());
      CHECK(*below);
      CHECK(slurp(ws->dir() / "src/main.py") == "patched\n");
      CHECK(slurp(ws->dir() / "src/new.py") == "new\n");
      CHECK_FALSE(fs::exists(ws->dir() / "run.sh"));
      CHECK(slurp(ws->dir() / "build/lib.o") == "object\n");
      CHECK_FALSE(fs::exists(ws->dir() / "crlf.txt"));
      put(ws->dir() / "later", "x\n");
      CHECK(extract(*ws).paths == std::vector<std::string>{"crlf.txt", "later", "made.txt",
                                                           "run.sh", "src/main.py", "src/new.py"});

      // Whichever of the two would come last: they have a path in common.
      const auto meets = [&](const std::function<void(const fs::path&)>& change) {
        auto one = create(*s.store, s.snapshot, "meets");
        change(one->dir());
        const auto before = tree_of(one->dir());
        const auto laid = one->lay_below(layer);
        REQUIRE(laid.ok());
        if (!*laid) CHECK(tree_of(one->dir()) == before);
        return !*laid;
      };
      CHECK(meets([](const fs::path& dir) { put(dir / "made.txt", "by the patch\n"); }));
      CHECK(meets([](const fs::path& dir) { put(dir / "crlf.txt", "edited\n"); }));
      CHECK(meets([](const fs::path& dir) { put(dir / "build", "a file\n"); }));
      CHECK(meets([](const fs::path& dir) { put(dir / "made.txt/inside", "a folder\n"); }));
      CHECK(meets([](const fs::path& dir) { put(dir / "build/lib.o", "object\n"); }));
      CHECK_FALSE(meets([](const fs::path& dir) { put(dir / "build/other.o", "object\n"); }));
    }
  }
}

}  // namespace
}  // namespace proctor
