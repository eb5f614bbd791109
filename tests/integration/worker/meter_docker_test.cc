// The same metered run in a container.
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/worker/meter_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("worker") {
  TEST_CASE("an agent in a container that reaches its cap is stopped and its run is scored") {
    const auto image = test_image();
    REQUIRE_MESSAGE(image.ok(), "no Docker Engine: " << (image.ok() ? "" : image.error().detail));
    MeterScene scene;
    scene.docker = docker_socket();
    scene.contract.environment.image = *image;
    scene.contract.environment.variables["PATH"] = "/usr/bin:/bin";
    check_stopped_and_scored(scene);
  }
}
