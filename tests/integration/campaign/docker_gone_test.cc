// A Docker Engine that is killed while runs are in it: waited for, and nothing is lost.
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/sandbox/own_engine.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

std::size_t containers() {
  return must(parse_json(must(docker_call("GET", "/containers/json")))).size();
}
bool nothing_left() {
  const Json all = must(parse_json(must(docker_call("GET", "/containers/json?all=1"))));
  const Json volumes = must(parse_json(must(docker_call("GET", "/volumes")))).at("Volumes");
  return all.empty() && (volumes.is_null() || volumes.empty());
}

}  // namespace

TEST_SUITE("docker campaign") {
  TEST_CASE("an engine that is killed in the middle is waited for and nothing is lost") {
    if (!OwnEngine::possible()) {
      MESSAGE("not run: only root with dockerd can start an engine to kill");
      return;
    }
    OwnEngine engine;
    const std::string image = must(make_test_image());
    CampaignShape shape = gated_shape(3);
    const CampaignScene scene(shape);
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  sandbox: docker\n  image: \"" + image + "\"\n");
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([] { return containers() == 1; }), scene.said());
    engine.kill();
    REQUIRE(eventually([&] {
      return contains(scene.worker_log("local-1"), "does not offer sandbox:docker any more");
    }));
    CHECK_MESSAGE(run.running(), scene.said());
    CHECK(scene.ended() == 0);
    engine.start();
    REQUIRE(eventually(
        [&] { return contains(scene.worker_log("local-1"), "offers sandbox:docker now"); }));
    scene.open_gate();
    CHECK_MESSAGE(run.wait(60s) == 0, scene.said());
    check_books(scene, {.runs = 3, .attempts = Expected::Attempts::kAny});
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 3);
    // The one that was under way was spent on it, and no other.
    CHECK(scene.number("SELECT count(*) FROM attempts") == 4);
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(nothing_left());
    scene.require_nothing_left();
  }
}
