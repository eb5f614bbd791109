// A whole campaign in containers of a real Docker Engine.
#include "tests/integration/campaign/network_scene.h"
#include "tests/integration/campaign/services_scene.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

bool engine_answers() {
  look_also(left_in_engine);
  if (docker_call("GET", "/version").ok()) return true;
  MESSAGE("not run: no Docker Engine answers at " << docker_socket());
  return false;
}

}  // namespace

TEST_SUITE("docker campaign") {
  TEST_CASE("a campaign runs in containers to the same verdicts and leaves nothing") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const CampaignScene scene(judged_shape());
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  sandbox: docker\n  image: \"" + image + "\"\n");
    run_judged(scene);
    scene.require_nothing_left();
  }

  TEST_CASE("services run in containers beside those of checks and none of them is left") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const std::string environment = "  sandbox: docker\n  image: \"" + image + "\"\n";
    run_services(environment);
    run_killed_services(environment);
    run_broken_image_service(environment, image);
  }

  TEST_CASE("containers reach what their phase allows and nothing is left of it") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const std::string environment = "  sandbox: docker\n  image: \"" + image + "\"\n";
    NetworkScene(environment).run_and_check();
    run_killed(environment);
  }
}
