// Named volumes of a real Docker Engine.
#include <cstdlib>

#include "tests/integration/workspace/fixture.h"
#include "worker/workspace/mounted_workspace.h"

namespace proctor {
namespace {

using namespace testing;

const std::string& socket_path() {
  static const std::string path = [] {
    const char* set = std::getenv("PROCTOR_DOCKER_SOCKET");
    return std::string(set != nullptr ? set : "/var/run/docker.sock");
  }();
  return path;
}

bool engine_runs() {
  if (DockerVolumes(socket_path()).list({{"proctor.owner", "none"}}).ok()) return true;
  MESSAGE("not run: no Docker Engine at " << socket_path());
  return false;
}

TEST_SUITE("docker volumes") {
  TEST_CASE("a workspace is a named volume that goes with it") {
    if (!engine_runs()) return;
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    const DockerVolumes docker(socket_path());
    const std::string owner = "test-" + std::to_string(::getpid());
    WorkspaceStoreOptions options{temp.path() / "store", owner, std::nullopt, socket_path()};
    auto opened = open_workspace_store(options);
    REQUIRE(opened.ok());
    auto store = std::move(opened).value();
    auto ws = create(*store, snapshot_of(*store, repo.pinned()), "17.2-agent");
    const auto name = ws->docker_volume();
    REQUIRE_MESSAGE(name.ok(), (name.ok() ? "" : name.error().detail));
    CHECK(*ws->docker_volume() == *name);
    const auto seen = docker.list({{"proctor.owner", owner}});
    REQUIRE(seen.ok());
    REQUIRE(seen->size() == 1);
    CHECK(seen->begin()->first == *name);
    CHECK(seen->at(*name).at("proctor.attempt") == "17.2-agent");
    // One of a life that is over, and ours, which must stay.
    DockerLabels labels = seen->at(*name);
    labels["proctor.life"] = "life-gone";
    REQUIRE(docker.create(*name + "-old", ws->dir(), labels).ok());
    REQUIRE(store->clean_up().ok());
    CHECK(docker.list({{"proctor.owner", owner}})->size() == 1);
    ws.reset();
    CHECK(docker.list({{"proctor.owner", owner}})->empty());
    CHECK(docker.remove(*name).ok());  // absent is fine
  }

  TEST_CASE("no engine is an error that may pass") {
    const TempDir temp = temp_dir();
    const Repo repo = make_repo(temp.path() / "repo");
    WorkspaceStoreOptions options{temp.path() / "store", "w1", std::nullopt,
                                  (temp.path() / "no.sock").string()};
    auto opened = open_workspace_store(options);
    REQUIRE(opened.ok());
    auto ws = create(**opened, snapshot_of(**opened, repo.pinned()), "a");
    CHECK(ws->docker_volume().error().code == Errc::kUnavailable);
    auto plain = open_store(temp.path() / "store", std::nullopt, "w2");
    CHECK(create(*plain, snapshot_of(*plain, repo.pinned()), "a")->docker_volume().error().code ==
          Errc::kUnavailable);
  }
}

}  // namespace
}  // namespace proctor
