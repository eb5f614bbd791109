// What a trace tells of things that it does not list: a stream that is cut, refusals that are none.
#include <doctest/doctest.h>

#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/judgement.h"
#include "common/trace/model_calls.h"
#include "sample_run.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("trace") {
  TEST_CASE("a stream that is cut says so in its last line, and nothing else is taken for that") {
    const std::string line = cut_line(611'451, 9'000'000);
    CHECK(line == "\n[proctor: cut here: 611451 of 9000000 bytes are not kept]\n");
    CHECK(cut_line(UINT64_MAX, UINT64_MAX).size() <= kCutLineBytes);
    CHECK(*cut_line_of("xx" + line) == "[proctor: cut here: 611451 of 9000000 bytes are not kept]");
    for (const std::string& other :
         {std::string(), std::string("\n"), line + "x", line.substr(1), "\nx" + line.substr(1),
          line.substr(0, line.size() - 1), std::string("bytes are not kept]\n")})
      CHECK_MESSAGE(!cut_line_of(other), other);
  }

  TEST_CASE("refusals that no event lists are counted where a gateway closed") {
    const auto temp = TempDir::create("trace");
    REQUIRE(temp.ok());
    const fs::path dir = temp->path() / "run";
    std::uint64_t now = 0;
    Result<RunRecorder> made = RunRecorder::create(dir, [&now] { return now += 10; });
    REQUIRE(made.ok());
    RunRecorder run = std::move(made).value();
    REQUIRE(run.write_manifest(sample_manifest()).ok());
    const auto note = [&](const char* type, const Json& payload) {
      REQUIRE(run.event(type, Actor::kHarness, payload).ok());
    };
    const Json granted = {{"granted_micros", 1}};
    note("meter", {{"op", "reserve"}, {"action", "llm_request"}, {"answer", granted}});
    note("meter", {{"op", "charge"}, {"id", "1"}});
    note("gateway.open", {{"model", "m"}});
    note("model.refused", {{"call", 1}, {"status", 401}, {"final", true}});
    note("gateway.closed", {{"refused", 3}, {"wrong_tokens", 1}, {"unknown_routes", 0}});
    note("gateway.open", {{"model", "m"}});  // the next life
    note("model.refused", {{"call", 1}, {"status", 400}, {"final", false}});
    note("gateway.closed", {{"refused", 2}, {"wrong_tokens", 0}, {"unknown_routes", 1}});
    REQUIRE(run.flush().ok());
    const Result<TracedModels> told = read_models(dir);
    REQUIRE(told.ok());
    CHECK(told->calls.size() == 2);
    CHECK(told->unlisted.all == 3);  // of five, two are listed
    CHECK(told->unlisted.wrong_tokens == 1);
    CHECK(told->unlisted.unknown_routes == 1);
    CHECK(told->metered == 1);
  }

  TEST_CASE(
      "a fragment that the worker wrote of a build that failed is evidence, an agent's is none") {
    JudgeRules rules;
    rules.checks = {{"build", Gate::kBuild}};
    const auto judged = [&](CheckOutcome outcome, Actor actor, const char* extractor) {
      const JudgementFold::Monitors none;
      JudgementFold fold(rules, none);
      events::CheckTold told{sample_report().checks[0]};
      told.check.outcome = outcome;
      told.check.exit_code = outcome == CheckOutcome::kPass ? 0 : 1;
      TraceEvent event;
      event.actor = Actor::kHarness;
      event.seq = 3;
      event.type = events::kAcceptance.type;
      event.payload = events::kAcceptance.json(told);
      fold.on(event);
      event.actor = actor;
      event.seq = 4;
      event.type = events::kFragment.type;
      event.payload = events::kFragment.json("build", extractor, "stderr", 7, "words");
      fold.on(event);
      std::string out;
      for (const Tag& tag : fold.result(RunOutcome::kFailure).tags)
        if (tag.gate == "build") out += tag.id + "@" + std::to_string(tag.evidence.front()) + " ";
      return out;
    };
    using enum CheckOutcome;
    CHECK(judged(kFail, Actor::kHarness, "missing_dependency") ==
          "build.failed@3 build.missing_dependency@4 ");
    CHECK(judged(kFail, Actor::kHarness, "incompatible_environment") ==
          "build.failed@3 build.incompatible_environment@4 ");
    CHECK(judged(kError, Actor::kHarness, "missing_dependency") ==
          "evaluation.error@3 build.missing_dependency@4 ");
    CHECK(judged(kFail, Actor::kAgent, "missing_dependency") == "build.failed@3 ");
    CHECK(judged(kFail, Actor::kHarness, "of_a_later_version") == "build.failed@3 ");
    CHECK(judged(kPass, Actor::kHarness, "missing_dependency") == "");
  }
}
