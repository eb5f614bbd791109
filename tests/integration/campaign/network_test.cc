// Allow-lists through a whole campaign, and what a killed worker leaves of them.
#include "tests/integration/campaign/network_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("network campaign") {
  TEST_CASE("each phase reaches its own places and the trace says what was asked for") {
    NetworkScene("").run_and_check();
  }

  TEST_CASE("a worker killed while its agent is in the network leaves nothing of it") {
    run_killed("");
  }
}
