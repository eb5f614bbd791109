// Workspaces that nobody touched are handed on; any touch at all ends that.
#include <fcntl.h>
#include <sys/xattr.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/overlay_pool.h"

namespace proctor {
namespace {

using namespace proctor::testing;

struct Pooled {
  TempDir temp = TempDir::create("overlay-pool").value();
  fs::path lives = temp.path() / "lives";
  // The lock of an entry lies beside it.
  OverlayLayers layers{temp.path() / "entry/git", temp.path() / "entry/work"};
  Pooled() {
    REQUIRE(make_dirs(lives).ok());
    put(layers.git / ".git/HEAD", "ref: refs/heads/main\n");
    put(layers.tree / "src/a.txt", "a\n");
    put(layers.tree / "README", "hello\n");
    put(temp.path() / "entry" / kTreeSentinel, "boot\n");
  }
};

std::size_t mounts_below(const fs::path& dir) {
  const std::string mounts = slurp("/proc/self/mounts");
  const std::string part = " " + dir.string() + "/";
  std::size_t n = 0;
  for (std::size_t at = mounts.find(part); at != std::string::npos; at = mounts.find(part, at + 1))
    ++n;
  return n;
}

// Those that can be mounted here.
std::vector<WorkspaceKind> mountable() {
  if (const Status own = ::geteuid() == 0 ? ok_status() : enter_own_mounts(); !own.ok()) {
    MESSAGE("not run: " << own.error().detail);
    return {};
  }
  const WorkspaceKind kind =
      ::geteuid() == 0 ? WorkspaceKind::kOverlay : WorkspaceKind::kUserOverlay;
  const Pooled p;
  // The kernel mounts no overlay whose changes would go to another overlay.
  OverlayPool pool(p.lives, kind);
  if (const auto tried = pool.take(p.layers); !tried.ok()) {
    MESSAGE("not run: " << tried.error().detail);
    return {};
  }
  return {kind};
}

TEST_SUITE("overlay pool") {
  TEST_CASE("an overlay that was only read is handed on as it is") {
    for (const WorkspaceKind kind : mountable()) {
      CAPTURE(to_string(kind));
      Pooled p;
      OverlayPool pool(p.lives, kind);
      auto first = pool.take(p.layers).value();
      const fs::path where = first->merged();
      CHECK(slurp(where / "src/a.txt") == "a\n");
      CHECK(tree_of(where).size() == 2);
      pool.give_back(std::move(first));
      auto again = pool.take(p.layers).value();
      CHECK(again->merged() == where);
      auto other = pool.take(p.layers).value();
      CHECK(other->merged() != where);
      CHECK(mounts_below(p.lives) >= 2);
    }
  }

  TEST_CASE("an overlay that was touched in any way is never seen again") {
    for (const WorkspaceKind kind : mountable()) {
      CAPTURE(to_string(kind));
      const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>> touches = {
          {"a file more", [](const fs::path& d) { put(d / "new", "x"); }},
          {"a file less", [](const fs::path& d) { REQUIRE(fs::remove(d / "README")); }},
          {"a file made and removed",
           [](const fs::path& d) {
             put(d / "new", "x");
             REQUIRE(fs::remove(d / "new"));
           }},
          {"a deep file written", [](const fs::path& d) { put(d / "src/a.txt", "b"); }},
          {"a file opened to be written",
           [](const fs::path& d) {
             const int fd = ::open((d / "src/a.txt").c_str(), O_RDWR | O_CLOEXEC);
             REQUIRE(0 <= fd);
             ::close(fd);
           }},
          {"the root's mode, there and back",
           [](const fs::path& d) {
             REQUIRE(::chmod(d.c_str(), 0700) == 0);
             REQUIRE(::chmod(d.c_str(), 0755) == 0);
           }},
          {"an attribute of the root",
           [](const fs::path& d) { REQUIRE(::setxattr(d.c_str(), "user.note", "x", 1, 0) == 0); }},
          {"an attribute of the root, there and back",
           [](const fs::path& d) {
             REQUIRE(::setxattr(d.c_str(), "user.note", "x", 1, 0) == 0);
             REQUIRE(::removexattr(d.c_str(), "user.note") == 0);
           }},
          {"the root's times",
           [](const fs::path& d) { REQUIRE(::utimensat(AT_FDCWD, d.c_str(), nullptr, 0) == 0); }},
          {"a mode below",
           [](const fs::path& d) { REQUIRE(::chmod((d / "src").c_str(), 0) == 0); }},
      };
      for (const auto& [name, touch] : touches) {
        CAPTURE(name);
        Pooled p;
        OverlayPool pool(p.lives, kind);
        auto mount = pool.take(p.layers).value();
        const fs::path where = mount->merged();
        // The clock of ctime ticks every few milliseconds; no sandbox is that fast.
        struct stat before {};
        struct stat now {};
        REQUIRE(::lstat(mount->upper().c_str(), &before) == 0);
        do {
          put(p.temp.path() / "tick", "x");
          REQUIRE(::stat((p.temp.path() / "tick").c_str(), &now) == 0);
        } while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
                 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
        touch(where);
        CHECK_FALSE(mount->untouched());
        pool.give_back(std::move(mount));
        CHECK_FALSE(fs::exists(where.parent_path()));
        CHECK(pool.take(p.layers).value()->merged() != where);
      }
    }
  }

  TEST_CASE("a pool keeps few overlays and none after it is closed") {
    for (const WorkspaceKind kind : mountable()) {
      CAPTURE(to_string(kind));
      Pooled p;
      OverlayPool pool(p.lives, kind);
      std::vector<std::unique_ptr<OverlayMount>> taken;
      for (int i = 0; i < 20; ++i) taken.push_back(pool.take(p.layers).value());
      for (auto& mount : taken) pool.give_back(std::move(mount));
      CHECK(mounts_below(p.lives) <= 16);
      CHECK(mounts_below(p.lives) > 0);
      auto last = pool.take(p.layers).value();
      pool.close();
      pool.give_back(std::move(last));
      CHECK(mounts_below(p.lives) == 0);
      CHECK(fs::is_empty(p.lives));
    }
  }

  TEST_CASE("overlays of another tree make room for the one in use") {
    for (const WorkspaceKind kind : mountable()) {
      CAPTURE(to_string(kind));
      Pooled p;
      OverlayLayers second = p.layers;
      second.tree = p.temp.path() / "other/work";
      put(p.temp.path() / "other" / kTreeSentinel, "boot\n");
      put(second.tree / "file", "other\n");
      OverlayPool pool(p.lives, kind);
      std::vector<std::unique_ptr<OverlayMount>> taken;
      for (int i = 0; i < 16; ++i) taken.push_back(pool.take(p.layers).value());
      for (auto& mount : taken) pool.give_back(std::move(mount));
      auto mount = pool.take(second).value();
      const fs::path where = mount->merged();
      CHECK(slurp(where / "file") == "other\n");
      pool.give_back(std::move(mount));
      CHECK(pool.take(second).value()->merged() == where);
      CHECK(mounts_below(p.lives) <= 16);
    }
  }

  TEST_CASE("what is done in it is found in its upper layer") {
    for (const WorkspaceKind kind : mountable()) {
      CAPTURE(to_string(kind));
      Pooled p;
      OverlayPool pool(p.lives, kind);
      auto mount = pool.take(p.layers).value();
      put(mount->merged() / "src/a.txt", "edited\n");
      put(mount->merged() / "new/deep/file", "new\n");
      REQUIRE(fs::remove(mount->merged() / "README"));
      CHECK(slurp(mount->upper() / "src/a.txt") == "edited\n");
      CHECK(slurp(mount->upper() / "new/deep/file") == "new\n");
      CHECK(slurp(p.layers.tree / "src/a.txt") == "a\n");
      struct stat st {};
      REQUIRE(::lstat((mount->upper() / "README").c_str(), &st) == 0);
      CHECK(is_whiteout(st));
      const auto upper = mount->surrender();
      REQUIRE(upper.ok());
      CHECK(mounts_below(p.lives) == 0);
    }
  }
}

}  // namespace
}  // namespace proctor
