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
    const Result<StatusSnapshot> read = parse_status(status_text(s));
    REQUIRE(read.ok());
    CHECK(read->lag == s.lag);
    CHECK(read->floods == 17);
  }

  TEST_CASE("a foretold end has its bounds or what it waits for, and a suspect its time") {
    StatusSnapshot s;
    s.campaign = "c";
    s.state = "running";
    s.eta_ms = 60'000;
    s.eta_low_ms = 40'000;
    s.eta_high_ms = 120'000;
    s.workers.push_back(
        {"w", 2, 1, "suspect", "bubblewrap", WallTime(1'000'000), WallTime(1'030'000)});
    const StatusSnapshot read = parse_status(status_text(s)).value();
    CHECK(progress_line(read, 0).find("ETA 1:00 (0:40 to 2:00)") != std::string::npos);
    CHECK(describe(read).find("w: suspect since 1970-01-01T00:16:40") != std::string::npos);
    CHECK(describe(read).find("taken for lost at 1970-01-01T00:17:10") != std::string::npos);
    s.eta_high_ms = -1;
    CHECK(progress_line(s, 0).find("(0:40 to unknown)") != std::string::npos);
    s.eta_waits = "a first worker";
    CHECK(progress_line(s, 0).find("ETA unknown: it waits for a first worker") !=
          std::string::npos);
  }

  TEST_CASE("an envelope without a limit names none") {
    StatusSnapshot s;
    s.state = "running";
    s.envelopes.push_back({"global", kLedgerMax, {}, {}, {}});
    CHECK(progress_line(s, 0).find(format_usd(kLedgerMax)) == std::string::npos);
    CHECK(progress_line(s, 0).find(" | " + format_usd(MicroUsd::zero()) + " USD") !=
          std::string::npos);
    CHECK(describe(s).find(format_usd(kLedgerMax)) == std::string::npos);
    CHECK(describe(s).find("none") != std::string::npos);
    s.envelopes[0].cap = MicroUsd::from_micros(2'000'000);
    CHECK(progress_line(s, 0).find(" of " + format_usd(s.envelopes[0].cap)) != std::string::npos);
  }

  TEST_CASE("workers beyond those that are listed are counted by state") {
    StatusSnapshot s;
    s.campaign = "c";
    s.state = "running";
    s.workers.push_back({"w", 2, 1, "ready", "bubblewrap"});
    s.workers_more = {{"gone", 12}, {"ready", 3}};
    const StatusSnapshot read = parse_status(status_text(s)).value();
    CHECK(read.workers_more == s.workers_more);
    CHECK(describe(read).find("and 12 gone, 3 ready besides") != std::string::npos);
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
    for (const std::string& text : {describe(s), progress_line(s, 0), status_text(s)}) {
      CAPTURE(text);
      for (const char* raw : {"\x1b", "\xe2\x80\xae", "\x7f", "\xc2\x9b"})
        CHECK(text.find(raw) == std::string::npos);
    }
    CHECK(describe(s).find("a\\x1b[2J\\xe2\\x80\\xaeb\\x7f\\xc2\\x9b: ") != std::string::npos);
    const Result<StatusSnapshot> read = parse_status(status_text(s));
    REQUIRE(read.ok());
    CHECK(read->workers[0].name == bad);  // a script gets what was said
  }
}
