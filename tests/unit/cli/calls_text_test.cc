#include "coordinator/cli/evidence_text.h"

#include <doctest/doctest.h>

using namespace proctor;
using namespace proctor::cli;

TEST_SUITE("calls of models") {
  TEST_CASE("what is refused and not listed is counted, with why") {
    TracedModels told;
    CHECK(calls_text(told) == "  no call of a model went through the gateway\n");
    told.unlisted = {2, 2, 0};
    CHECK(calls_text(told) ==
          "  no call of a model went through the gateway\n"
          "  2 more refused before they were calls, which no event lists: 2 without the run's "
          "token\n");
    TracedCall& call = told.calls.emplace_back();
    call.number = 4;
    call.refused = {{"status", 401}, {"why", "used up"}, {"route", "chat"}};
    told.unlisted = {4, 1, 1};
    const std::string text = calls_text(told);
    CHECK_MESSAGE(text.find("call 4: used up\n") != std::string::npos, text);
    CHECK_MESSAGE(text.find("  4 more refused before they were calls") != std::string::npos, text);
    CHECK_MESSAGE(text.find("2 after its last word") != std::string::npos, text);
    CHECK(to_json(told.unlisted)["refused"] == 4);
  }

  TEST_CASE("calls that go by no gateway are where their meter wrote them") {
    TracedModels told;
    told.metered = 2;
    const std::string text = calls_text(told);
    CHECK_MESSAGE(text.find("its meter granted 2, and") != std::string::npos, text);
  }
}
