// A whole campaign in containers of a real Docker Engine.
#include <array>

#include "tests/integration/campaign/network_scene.h"
#include "tests/integration/campaign/services_scene.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

bool engine_answers() {
  if (docker_call("GET", "/version").ok()) return true;
  MESSAGE("not run: no Docker Engine answers at " << docker_socket());
  return false;
}

// Of a campaign's own workers, which are local-1, local-2; other tests that run beside us have
// other owners.
std::size_t of_campaigns(const Json& objects) {
  std::size_t count = 0;
  if (objects.is_null()) return 0;
  for (const Json& object : objects)
    count += object.at("Labels").value("proctor.owner", "").starts_with("local-");
  return count;
}

std::array<std::size_t, 2> ours() {
  const std::string filter = "filters=%7B%22label%22%3A%5B%22proctor.owner%22%5D%7D";
  const auto list = [&](const std::string& target) {
    return must(parse_json(must(docker_call("GET", target + filter))));
  };
  return {of_campaigns(list("/containers/json?all=1&")),
          of_campaigns(list("/volumes?").at("Volumes"))};
}

}  // namespace

TEST_SUITE("docker campaign") {
  TEST_CASE("a campaign runs in containers to the same verdicts and leaves nothing") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const CampaignScene scene(judged_shape());
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  sandbox: docker\n  image: \"" + image + "\"\n");
    const auto before = ours();
    run_judged(scene);
    CHECK(ours() == before);
    scene.require_nothing_left();
  }

  TEST_CASE("services run in containers beside those of checks and none of them is left") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const auto before = ours();
    const std::string environment = "  sandbox: docker\n  image: \"" + image + "\"\n";
    run_services(environment);
    run_killed_services(environment);
    run_broken_image_service(environment, image);
    CHECK(ours() == before);
  }

  TEST_CASE("containers reach what their phase allows and nothing is left of it") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    const auto before = ours();
    const std::string environment = "  sandbox: docker\n  image: \"" + image + "\"\n";
    NetworkScene(environment).run_and_check();
    run_killed(environment);
    CHECK(ours() == before);
  }
}
