// status.json: written by one process, read by another.
#include <doctest/doctest.h>

#include "coordinator/shell/status.h"

using namespace proctor;

TEST_SUITE("shell") {
  TEST_CASE("how late the loop is comes through status.json") {
    StatusSnapshot s;
    s.campaign = "c";
    s.state = "running";
    s.lag = {1.5, 20.25, 300.0, 4'000};
    s.floods = 17;
    const Result<StatusSnapshot> read = parse_status(to_json(s));
    REQUIRE(read.ok());
    CHECK(read->lag == s.lag);
    CHECK(read->floods == 17);
  }
}
