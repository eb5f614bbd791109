// The reference agent in containers of a Docker Engine, one for each of its commands.
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/tools/loop_in_image.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("tool loop worker") {
  TEST_CASE("a task in an image is solved by tools in containers, of which none is left") {
    const auto image = test_image();
    REQUIRE_MESSAGE(image.ok(), "no Docker Engine: " << (image.ok() ? "" : image.error().detail));
    ImageLoopScene scene;
    scene.docker = docker_socket();
    scene.options = {"--images", "docker"};
    scene.is_solved_in(*image, "docker");
    ImageAgentScene agent;
    agent.docker = scene.docker;
    agent.options = scene.options;
    agent.is_solved_in(*image);
    for (const LoopScene* of : std::initializer_list<LoopScene*>{&scene, &agent}) {
      const fs::path root = fs::absolute(of->temp.path() / "root");
      CHECK(left_in_engine("w1-" + sha256(root.string()).short_hex()) == "");
    }
  }
}
