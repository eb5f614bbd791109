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

  TEST_CASE("what peers wrote is shown without what a terminal would obey") {
    const std::string bad =
        "a\x1b[2J\xe2\x80\xae"
        "b\x7f\xc2\x9b";
    StatusSnapshot s;
    s.campaign = s.state = bad;
    s.envelopes.push_back({bad, {}, {}, {}, {}});
    s.alerts.push_back({WallTime(0), bad});
    s.workers.push_back({bad, 1, 0, bad, bad});
    for (const std::string& text : {describe(s), progress_line(s, 0), to_json(s)}) {
      CAPTURE(text);
      for (const char* raw : {"\x1b", "\xe2\x80\xae", "\x7f", "\xc2\x9b"})
        CHECK(text.find(raw) == std::string::npos);
    }
    CHECK(describe(s).find("a\\x1b[2J\\xe2\\x80\\xaeb\\x7f\\xc2\\x9b: ") != std::string::npos);
    const Result<StatusSnapshot> read = parse_status(to_json(s));
    REQUIRE(read.ok());
    CHECK(read->workers[0].name == bad);  // a script gets what was said
  }
}
