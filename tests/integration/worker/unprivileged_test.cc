// A worker of a user without any rights: overlays of its own, which nobody else sees and which go
// with it, whatever it dies of.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/worker/left_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr uid_t kNobody = 65534;

// Where we are root the worker runs as nobody; else as who we are.
struct UnprivilegedScene : LeftScene {
  UnprivilegedScene() {
    const fs::path root = temp.path() / "root";
    REQUIRE(make_dirs(root).ok());
    if (::geteuid() != 0) return;
    REQUIRE(::chown(root.c_str(), kNobody, kNobody) == 0);
    // Where the build is, others may have no access.
    program = temp.path() / "worker";
    fs::copy_file(build_dir() / "proctor-worker", program);
    before = {
        "setpriv",       "--reuid", std::to_string(kNobody), "--regid", std::to_string(kNobody),
        "--clear-groups"};
  }
  // After the coordinator listens, which it does in a folder that is its own.
  void let_in() const {
    REQUIRE(::chmod(temp.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(socket.c_str(), 0777) == 0);
  }
  bool on_overlays() const {
    if (log().find("workspaces: user-overlay") != std::string::npos) return true;
    MESSAGE("not run: " << log());
    return false;
  }
  std::string mounts() const {
    const auto text = read_file("/proc/self/mounts", 1 << 20).value();
    return text.find(temp.path().string()) == std::string::npos ? "" : text;
  }
  std::size_t lives() const {
    std::size_t n = 0;
    for (const auto& owner : fs::directory_iterator(temp.path() / "root/workspaces"))
      for (const auto& life : fs::directory_iterator(owner.path()))
        n += life.is_directory() ? 1 : 0;
    return n;
  }
};

}  // namespace

TEST_SUITE("worker") {
  TEST_CASE("a worker without root has overlays of its own") {
    UnprivilegedScene scene;
    scene.contract.setup.push_back({"echo made > made.txt", std::chrono::seconds(120)});
    FakeCoordinator coordinator(scene.socket, 1);
    scene.let_in();
    Child worker = scene.start_worker({"--workspaces", "auto"});
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    if (!scene.on_overlays()) return;
    const Method fix = scene.method("fix", Method::Kind::kCommand,
                                    "cat made.txt; echo 'echo $(($1 + $2))' > calc.sh");
    for (std::uint32_t run : {1, 2}) {  // the second one on what the first one's setup made
      coordinator.assign({scene.assignment(coordinator, fix, run)}, scene.settings_digest());
      const LeftScene::Ended e = scene.ended(coordinator, id(run));
      CHECK(e.result.outcome == RunOutcome::kSuccess);
      CHECK(e.said == "made\n");
      CHECK(LeftScene::count(e.events, "\"kind\":\"user-overlay\"") == 2);
      fs::remove_all(scene.temp.path() / "got");
    }
    CHECK(scene.mounts().empty());  // of its own alone
    scene.stop(coordinator, worker);
  }

  TEST_CASE("what a killed worker without root had mounted is gone with it") {
    UnprivilegedScene scene;
    FakeCoordinator coordinator(scene.socket, 1);
    scene.let_in();
    Child first = scene.start_worker();
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    if (!scene.on_overlays()) return;
    const Method sleeper = scene.method("sleeper", Method::Kind::kCommand, "echo begun; sleep 60");
    coordinator.assign({scene.assignment(coordinator, sleeper, 4)}, scene.settings_digest());
    scene.kill_when(coordinator, std::move(first),
                    [](const wire::RunningAttempt& a) { return a.stage == wire::Stage::kAgent; });
    CHECK(scene.lives() == 1);
    CHECK(scene.mounts().empty());
    Child second = scene.start_worker();
    REQUIRE_MESSAGE(coordinator.connected(), scene.log());
    const Method fix =
        scene.method("fix", Method::Kind::kCommand, "echo 'echo $(($1 + $2))' > calc.sh");
    coordinator.assign({scene.assignment(coordinator, fix, 5)}, scene.settings_digest());
    CHECK(scene.ended(coordinator, id(5)).result.outcome == RunOutcome::kSuccess);
    CHECK(scene.lives() == 1);  // its own
    scene.stop(coordinator, second);
    CHECK(scene.lives() == 0);
  }

  TEST_CASE("a kind of workspaces that is not one, or not to be had, ends the worker with why") {
    Scene scene;
    const auto said = [&](const std::string& kind) {
      CommandSpec spec;
      spec.argv = {
          (build_dir() / "proctor-worker").string(), "--clean-up",   "--name", "w2", "--root",
          (scene.temp.path() / "root2").string(),    "--workspaces", kind};
      const CommandOutcome o = run_command(spec).value();
      return std::to_string(o.exit_code) + " " + o.out + o.err;
    };
    CHECK(said("carpet").starts_with("2 "));
    CHECK(said("carpet").find("auto, overlay, user-overlay, reflink or copy") != std::string::npos);
    CHECK(said("fuse-overlay").starts_with("2 "));
    CHECK(said("copy").starts_with("0 "));
    const std::string other = ::geteuid() == 0 ? "user-overlay" : "overlay";
    CHECK(said(other).starts_with("4 "));
    CHECK(said(other).find("workspaces: " + other + ": ") != std::string::npos);
  }
}
