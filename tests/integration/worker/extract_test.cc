// The patch of a large tree is made by a process of its own, which ends at its limits: whoever left
// so much has left a tree that is not to be read, and the worker has lost nothing by it.
#include <sys/resource.h>

#include <chrono>
#include <functional>

#include "tests/integration/workspace/fixture.h"
#include "tests/support/paths.h"
#include "worker/workspace/extract.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr std::size_t kPatchMost = std::size_t{1} << 30;

struct Scene {
  // `more`: what lies in the repository beside that of all tests.
  explicit Scene(const Extractor& extractor,
                 const std::function<void(const fs::path&)>& more = {}) {
    if (more) {
      more(repo.dir);
      git(repo.dir, {"add", "-A"});
      git(repo.dir, {"commit", "-q", "-m", "more"});
      repo.commit = git(repo.dir, {"rev-parse", "HEAD"});
    }
    WorkspaceStoreOptions options;
    options.root = temp.path() / "store";
    options.owner = "w1";
    options.extractor = extractor;
    auto opened = open_workspace_store(options);
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().detail));
    store = std::move(opened).value();
    auto made = store->create(snapshot_of(*store, repo.pinned()), "a");
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().detail));
    ws = std::move(made).value();
  }
  // Nothing that shrinks.
  void leave_noise(std::size_t bytes) const {
    std::mt19937_64 numbers(7);
    std::string noise(bytes, '\0');
    for (char& c : noise) c = static_cast<char>(numbers());
    put(ws->dir() / "noise", noise);
  }
  TempDir temp = TempDir::create("extract-test").value();
  Repo repo = make_repo(temp.path() / "repo");
  std::unique_ptr<WorkspaceStore> store;
  std::unique_ptr<Workspace> ws;
};

Extractor program() {
  Extractor out;
  out.path = build_dir() / "proctor-worker";
  return out;
}

// So that the limits and nothing else stand in its way.
constexpr std::size_t kMuch = std::size_t{40} << 20;

}  // namespace

TEST_SUITE("extract") {
  TEST_CASE("a large tree's patch is that of a small one's maker, and says what it took") {
    Scene apart(program());
    apart.leave_noise(2 * kMuchBytes);
    const auto patch = apart.ws->extract_patch(kPatchMost);
    REQUIRE_MESSAGE(patch.ok(), (patch.ok() ? "" : patch.error().detail));
    REQUIRE(patch->apart);
    CHECK(0 < patch->apart->cpu.count());
    CHECK(kMuchBytes < patch->apart->memory_peak);
    CHECK(patch->paths == std::vector<std::string>{"noise"});
    Scene here({});
    here.leave_noise(2 * kMuchBytes);
    const auto same = here.ws->extract_patch(kPatchMost);
    REQUIRE_MESSAGE(same.ok(), (same.ok() ? "" : same.error().detail));
    CHECK_FALSE(same->apart);
    CHECK(same->diff == patch->diff);
  }

  TEST_CASE("what was removed is much as what was made is") {
    const auto removed_apart = [](std::size_t files, std::size_t bytes, const char* command) {
      const Scene scene(program(), [&](const fs::path& at) {
        for (std::size_t i = 0; i < files; ++i)
          put(at / "large" / std::to_string(i), std::string(bytes, 'a') + std::to_string(i));
      });
      CommandSpec remove;
      remove.argv = {"sh", "-c", command, "sh", scene.ws->dir().string()};
      REQUIRE(run_for_output(remove).ok());
      const auto patch = scene.ws->extract_patch(kPatchMost);
      REQUIRE_MESSAGE(patch.ok(), (patch.ok() ? "" : patch.error().detail));
      CHECK(patch->deletions == files);
      return patch->apart.has_value();
    };
    CHECK_FALSE(removed_apart(2, 100, "rm -r \"$1/large\""));
    CHECK(removed_apart(2, kMuchBytes, "rm -r \"$1/large\""));
    CHECK(removed_apart(2, kMuchBytes, "rm -r \"$1/large\" && mkdir \"$1/large\""));
    CHECK(removed_apart(kMuchFiles + 1, 1, "rm -r \"$1/large\""));
  }

  TEST_CASE("many files are much too, and a little is made at once") {
    Scene scene(program());
    put(scene.ws->dir() / "one", "x\n");
    auto patch = scene.ws->extract_patch(kPatchMost);
    REQUIRE(patch.ok());
    CHECK_FALSE(patch->apart);
    for (std::uint64_t i = 0; i <= kMuchFiles; ++i)
      put(scene.ws->dir() / "many" / std::to_string(i), "");
    patch = scene.ws->extract_patch(kPatchMost);
    REQUIRE_MESSAGE(patch.ok(), (patch.ok() ? "" : patch.error().detail));
    CHECK(patch->apart.has_value());
    CHECK(patch->files == kMuchFiles + 2);
  }

  TEST_CASE("beyond its CPU time the tree is not to be read") {
    Extractor slow = program();
    slow.cpu = std::chrono::seconds(1);
    Scene scene(slow);
    scene.leave_noise(3 * kMuch);
    const auto patch = scene.ws->extract_patch(kPatchMost);
    REQUIRE_FALSE(patch.ok());
    CHECK(patch.error().code == Errc::kExhausted);
    CHECK(patch.error().detail.find("1 s of CPU time") != std::string::npos);
  }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  TEST_CASE("beyond its memory the tree is not to be read, and the worker's is not taken") {
    Extractor narrow = program();
    narrow.memory = std::uint64_t{160} << 20;
    Scene scene(narrow);
    scene.leave_noise(kMuch);
    const auto patch = scene.ws->extract_patch(kPatchMost);
    REQUIRE_FALSE(patch.ok());
    CHECK_MESSAGE(patch.error().code == Errc::kExhausted, patch.error().detail);
    CHECK(patch.error().detail.find("160 MiB of memory") != std::string::npos);
  }
#endif
}
