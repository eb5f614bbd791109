#include "coordinator/journal/journal_rows.h"

#include <doctest/doctest.h>

#include <string>

using namespace proctor;

TEST_SUITE("journal") {
  TEST_CASE("counters that older journals do not have are read as none, and written where any is") {
    Usage u;
    CHECK(journal::metered_text(u).empty());
    u.overruns = 2;
    const std::string old = "0 0 0 0 0 0 0 0 0 0 0 0 0 2";
    CHECK(journal::metered_text(u) == old);
    Usage back;
    CHECK(journal::read_metered(old, back));
    CHECK(back == u);
    u.cached_input = 70;
    u.replayed_calls = 1;
    CHECK(journal::metered_text(u) == old + " 70 0 0 0 0 0 0 0 1");
    back = {};
    CHECK(journal::read_metered(journal::metered_text(u), back));
    CHECK(back == u);
    CHECK_FALSE(journal::read_metered(old + " 70", back));
    CHECK_FALSE(journal::read_metered(old + " 70 0 0 0 0 0 0 0 1 5", back));
    u.busy_calls = 3;
    CHECK(journal::metered_text(u) == old + " 70 0 0 0 0 0 0 0 1 0 3");
    back = {};
    CHECK(journal::read_metered(journal::metered_text(u), back));
    CHECK(back == u);
  }

  // They are what older journals hold.
  TEST_CASE("the words of the format do not change") {
    CHECK(words_listed<AttemptState>() ==
          "reserving, denied, granted, finished, voided, lost or cancelled");
    CHECK(words_listed<RunOutcome>() == "success, failure, acceptance_error or invalid");
    CHECK(words_listed<Termination>() ==
          "completed, agent_timeout, budget_exceeded, resource_limit, policy_stop, "
          "operator_cancel, infrastructure, agent_unavailable, breaker or model_overloaded");
    CHECK(words_listed<Fault>() == "host, task or agent");
    CHECK(from_word<RunOutcome>("failure") == RunOutcome::kFailure);
    CHECK_FALSE(from_word<RunOutcome>("Success"));
    CHECK_FALSE(from_word<Termination>("completed "));
    CHECK_FALSE(from_word<AttemptState>(""));
  }
}
