// Services through a whole campaign, and what a killed worker leaves of them.
#include "tests/integration/campaign/services_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("services campaign") {
  TEST_CASE("a check asks its service and a patch that breaks the service has failed") {
    run_services("");
  }

  TEST_CASE("a worker killed among services leaves nothing of them") {
    run_killed_services("");
  }
}
