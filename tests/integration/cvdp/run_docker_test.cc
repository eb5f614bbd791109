// `proctor cvdp run` in containers of a real Docker Engine.
#include "tests/integration/cvdp/run_cases.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("cvdp run docker") {
  TEST_CASE("a harness sees what upstream shows it, by the Docker Engine") {
    if (have_docker("what a harness sees")) sees_what_upstream_shows(Runner::kDocker);
  }

  TEST_CASE("each service has its result, and limits have words, by the Docker Engine") {
    if (have_docker("each service has its result")) tells_services_apart(Runner::kDocker);
  }

  TEST_CASE("an agent's image sees what upstream shows it and its change counts, by Docker") {
    if (have_docker("an agent's image")) agent_sees_what_upstream_shows(Runner::kDocker);
  }
}
