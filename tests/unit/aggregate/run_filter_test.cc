// The filter language: what it means, and what it says to a typing mistake.
#include "coordinator/aggregate/run_filter.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>

#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Scene {
  ReportInput input = small_campaign();
  FilterNames names{input.strata_keys, input.runs};
  Result<RunFilter> parse(std::string_view words) const { return RunFilter::parse(words, names); }
  // Places in the plan, in order: "0 1 5".
  std::string found(std::string_view words) const {
    const Result<RunFilter> filter = parse(words);
    if (!filter.ok()) return filter.error().detail;
    std::string out;
    for (const RunRecord& run : input.runs)
      if (filter->matches(run)) out += (out.empty() ? "" : " ") + std::to_string(run.run.raw());
    return out;
  }
};

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("a filter means what it says") {
    Scene scene;
    scene.input.runs[1].violations = 2;
    scene.input.runs[2].patch = "three_way, conflict_markers";
    scene.input.runs[0].agent_exit = -1;
    using enum GateOutcome;
    scene.input.runs[3].gates = {kPass, kPass, kFail, kPass};
    scene.input.runs[3].tags = "functional.tests_failed,house.slow";
    scene.input.runs[4].gates = {kPass, kPass, kPass, kError};
    scene.input.runs[4].tags = "evaluation.error";
    const std::string all = "0 1 2 3 4 5 6 7 8 9 10 11";
    struct Row {
      std::string_view words;
      std::string found;
    };
    const Row rows[] = {
        {"", all},
        {"  ", all},
        {"method=beta", "8 9 10 11"},
        {"method=alpha,beta", all},
        {"method!=alpha", "8 9 10 11"},
        {"method!=alpha,beta", ""},
        {"not method=alpha", "8 9 10 11"},
        {"method=a*", "0 1 2 3 4 5 6 7"},
        {"outcome=success", "0 1 2"},
        {"outcome=success language=go", "0 1"},
        {"outcome=success and language=go", "0 1"},
        {"outcome=success or state=parked", "0 1 2 6"},
        {"method=beta (outcome=failure or state=removed)", "8 11"},
        {"state=planned,running", "7 9"},
        {"outcome=invalid end=infrastructure", "5"},
        {"satisfied=yes", "0"},
        {"satisfied=no outcome=success", "1 2"},
        {"violations>0", "1"},
        {"time>2s", "1 3"},
        {"time>=2000ms", "1 2 3"},
        {"time=0.1", "8"},
        {"cost>0.1 state=ended", "0 1 2 3 4 5 8"},
        {"cost=0.100001", "1 2 3 4 5 8"},
        {"model>0", "0"},
        {"exit=-1", "0"},
        {"attempts>1", "5"},
        {"parked=stage:main", "6"},
        {"run=cli/alpha/r1", "2"},
        {"run=\"cli/alpha/r1\"", "2"},
        {"stratum.language=rust outcome=success", "2"},
        {"order<2", "0 1"},
        {"worker=\"\"", all},
        {"gate.g3=fail", "3"},
        {"gate.g4=fail,error", "4"},
        {"gate.g1=pass", "3 4"},
        {"gate.g4!=pass state=ended", "0 1 2 4 5 8"},
        {"tag=house.slow", "3"},
        {"tag=evaluation.error,house.slow", "3 4"},
        {"tag=functional.*", "3"},
        {"tag!=house.slow tag!=\"\"", "4"},
        {"tag=policy.network_denied", ""},
    };
    for (const Row& row : rows) {
      CAPTURE(row.words);
      CHECK(scene.found(row.words) == row.found);
    }
  }

  TEST_CASE("a typing mistake is told with the nearest word") {
    const Scene scene;
    struct Row {
      std::string_view words;
      std::string_view says;
    };
    const Row rows[] = {
        {"metod=alpha", "there is no word \"metod\" (did you mean method?)"},
        {"method=alpa", "no run has method \"alpa\" (did you mean alpha?)"},
        {"outcome=sucess", "no run has outcome \"sucess\" (did you mean success?)"},
        {"language=rusty", "no run has language \"rusty\" (did you mean rust?)"},
        {"state=parkd", "no run has state \"parkd\" (did you mean parked?)"},
        {"end=timeout", "no run has end \"timeout\" (there are completed"},
        {"method", "expected one of = != < <= > >= after \"method\" at the end"},
        {"method<alpha", "method is no number"},
        {"cost>cheap", "\"cheap\" is no amount for cost (such as 0.50)"},
        {"time>5 days", "there is no word \"days\""},
        {"(method=alpha", "expected \")\" at the end"},
        {"method=alpha)", "and not \")\""},
        {"method=\"alpha", "expected a closing \" at the end"},
        {"=alpha", "expected a word such as outcome=failure, and not \"=alpha\""},
        {"method=", "expected a value after \"method\" at the end"},
        {"gate.g4=failed", "no run has gate.g4 \"failed\" (did you mean fail?)"},
        {"gate.g5=fail", "there is no word \"gate.g5\" (did you mean gate.g"},
        {"tag=policy.network_dennied", "(did you mean policy.network_denied?)"},
        {"tag>policy", "tag is no number"},
        {"method=alpha or", "expected a word such as outcome=failure at the end"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.words);
      const std::string said = scene.found(row.words);
      CHECK_MESSAGE(said.find(row.says) != std::string::npos, said);
    }
    std::string deep;
    for (int i = 0; i < 10'000; ++i) deep += '(';
    CHECK(scene.found(deep).find("nested too deep") != std::string::npos);
    CHECK(scene.found(std::string(20'000, 'a')).find("at most") != std::string::npos);
  }

  TEST_CASE("whatever a name is, its filter finds its runs and no others") {
    CHECK(rc::check([](const std::string& name, const std::string& other) {
      Runs runs;
      runs.ended("t", "go", name, RunOutcome::kSuccess);
      runs.ended("t", "go", other, RunOutcome::kSuccess);
      const std::vector<std::string> keys{"language"};
      // A star in a name stands for anything there too: such names a campaign does not allow.
      RC_PRE(name.find('*') == std::string::npos);
      const Result<RunFilter> filter =
          RunFilter::parse("method=" + filter_value(name), {keys, runs.records});
      RC_ASSERT(filter.ok());
      RC_ASSERT(filter->matches(runs.records[0]));
      RC_ASSERT(filter->matches(runs.records[1]) == (name == other));
    }));
  }

  TEST_CASE("no text makes the parser do anything but refuse") {
    const Scene scene;
    CHECK(rc::check([&](const std::string& words) {
      const Result<RunFilter> filter = scene.parse(words);
      const bool answers = filter.ok() || !filter.error().detail.empty();
      RC_ASSERT(answers);
    }));
  }

  TEST_CASE("a key that a word of the language hides is asked for by its whole name") {
    CHECK(filter_key("language") == "language");
    CHECK(filter_key("cost") == "stratum.cost");
    CHECK(filter_key("two words") == "\"two words\"");
  }
}
