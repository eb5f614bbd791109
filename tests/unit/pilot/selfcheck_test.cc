#include "common/pilot/selfcheck.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace proctor;

namespace {

constexpr auto kPass = RunOutcome::kSuccess;
constexpr auto kFail = RunOutcome::kFailure;
constexpr auto kError = RunOutcome::kAcceptanceError;

Repeat repeat(RunOutcome outcome, std::vector<std::string> failing = {"b"}) {
  const CheckOutcome check = outcome == kPass   ? CheckOutcome::kPass
                             : outcome == kFail ? CheckOutcome::kFail
                                                : CheckOutcome::kError;
  if (outcome != kFail) failing.clear();
  return {outcome, "", {{"tests", check, std::move(failing), "said so"}}};
}
VariantRuns three(std::string variant, RunOutcome outcome) {
  return {std::move(variant), "", {repeat(outcome), repeat(outcome), repeat(outcome)}};
}

// A contract whose reference has a test in it, and what a sound one comes to.
struct Case {
  Contract contract;
  std::vector<VariantRuns> runs{three("reference", kPass),  three("noop", kFail),
                                three("empty", kFail),      three("junk", kFail),
                                three("tests_only", kFail), three("source_only", kPass),
                                three("early_exit", kFail), three("shadowed_runner", kError),
                                three("mutant-1", kFail),   three("mutant-2", kFail),
                                three("mutant-3", kFail),   three("mutant-4", kFail),
                                three("mutant-5", kFail)};
  Case() {
    contract.id = "t";
    contract.reference_patch = "fix.patch";
    contract.files = {{"fix.patch", 0644,
                       "--- a/t/ini.t\n+++ b/t/ini.t\n@@ -1,1 +1,1 @@\n-a\n+b\n"
                       "--- a/lib/x\n+++ b/lib/x\n@@ -1,1 +1,1 @@\n-a\n+b\n"}};
    Check check;
    check.id = "tests";
    check.fail_to_pass = {"b"};
    check.pass_to_pass = {"a"};
    contract.checks = {check};
  }
  VariantRuns& of(std::string_view name) {
    return *std::ranges::find(runs, name, &VariantRuns::variant);
  }
  SelfcheckTask judged() const { return judge_selfcheck(contract, runs, {}); }
  std::string verdict() const { return judged().verdict; }
};

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

}  // namespace

TEST_SUITE("selfcheck") {
  TEST_CASE("all as it should be is sound") {
    const Case all;
    const SelfcheckTask task = all.judged();
    CHECK(task.verdict == "sound");
    CHECK(task.cause == SelfcheckCause::kNone);
    CHECK(is_good(task));
    CHECK(task.mutants.decided == 5);
    CHECK(task.mutants.killed == 5);
    CHECK(task.variants.front().outcomes ==
          std::vector<std::string>{"success", "success", "success"});
  }

  TEST_CASE("fewer repeats than were asked for are no verdict, whatever they came to") {
    for (const char* name : {"reference", "noop", "empty", "source_only", "mutant-3"})
      for (const std::size_t repeats : {0, 2}) {
        Case few;
        few.of(name).repeats.resize(repeats);
        CAPTURE(name);
        CHECK(few.judged().cause == SelfcheckCause::kUnjudged);
        CHECK(few.verdict() == "unjudged: " + std::string(name) + " has " +
                                   std::to_string(repeats) + " of 3 repeats");
      }
    Case none;
    for (VariantRuns& v : none.runs) v.repeats.clear();
    CHECK(none.judged().cause == SelfcheckCause::kUnjudged);
    CHECK(none.judged().mutants.decided == 0);  // it was "5 of 5 mutants die"
    none.runs.clear();
    CHECK(none.judged().cause == SelfcheckCause::kUnjudged);
    // One that an earlier version called sound is judged again.
    const Case all;
    SelfcheckResults earlier{"c", {}, {all.judged()}, 0};
    earlier.tasks.front().contract = all.contract.digest;
    REQUIRE(still_holds(earlier, all.contract, {}) != nullptr);
    earlier.tasks.front().variants.back().outcomes.clear();
    CHECK(still_holds(earlier, all.contract, {}) == nullptr);
  }

  TEST_CASE("each weakness has its name") {
    struct Row {
      const char* variant;
      RunOutcome outcome;
      const char* verdict;
      SelfcheckCause cause;
    };
    const Row rows[] = {
        {"reference", kFail, "unsound: reference failed (check tests: said so)",
         SelfcheckCause::kReference},
        {"reference", kError, "unsound: reference cannot run here (check tests: said so)",
         SelfcheckCause::kCannotRun},
        {"noop", kPass, "unsound: noop passed", SelfcheckCause::kNoop},
        {"noop", kError, "unsound: noop cannot be judged (check tests: said so)",
         SelfcheckCause::kNoop},
        {"empty", kPass, "unsound: empty fails otherwise than noop (no check says why)",
         SelfcheckCause::kNoTouch},
        {"junk", kError, "unsound: junk fails otherwise than noop (check tests: said so)",
         SelfcheckCause::kNoTouch},
        {"tests_only", kPass, "unsound: tests_only passed (t/ini.t)", SelfcheckCause::kTestsOnly},
        {"source_only", kFail, "unsound: source_only failed (check tests: said so)",
         SelfcheckCause::kSourceOnly},
    };
    for (const Row& row : rows) {
      CAPTURE(row.variant);
      Case c;
      c.of(row.variant) = three(row.variant, row.outcome);
      const SelfcheckTask task = c.judged();
      CHECK(task.verdict == row.verdict);
      CHECK(task.cause == row.cause);
      CHECK(!is_good(task));
    }
  }

  TEST_CASE("what is not the same every time is flaky, whichever way it goes") {
    Case reference;
    reference.of("reference").repeats[1] = repeat(kFail);
    CHECK(reference.verdict() == "flaky: reference 2 of 3");
    Case noop;
    noop.of("noop").repeats[2] = repeat(kPass);
    CHECK(noop.verdict() == "flaky: noop 1 of 3");
    Case other_tests;
    other_tests.of("noop").repeats[2] = repeat(kFail, {"b", "c"});
    CHECK(other_tests.verdict() == "flaky: noop fails otherwise in 1 of 3 (check tests: said so)");
    Case junk;
    junk.of("junk").repeats[0] = repeat(kFail, {"a", "b"});
    CHECK(junk.verdict() == "flaky: junk fails otherwise in 1 of 3 (check tests: said so)");
  }

  TEST_CASE("the tests that a check promises are held to it") {
    Case broken;
    for (const char* name : {"noop", "empty", "junk", "tests_only"})
      for (Repeat& r : broken.of(name).repeats) r = repeat(kFail, {"a", "b"});
    CHECK(broken.verdict() == "unsound: noop fails a of pass_to_pass");
    Case solved;
    for (const char* name : {"noop", "empty", "junk", "tests_only"})
      for (Repeat& r : solved.of(name).repeats) r = repeat(kFail, {"other"});
    CHECK(solved.verdict() == "unsound: noop passes b of fail_to_pass");
    // With as many as are kept, the others cannot be told.
    Case many;
    std::vector<std::string> failing;
    for (int i = 0; i < 100; ++i) failing.push_back("x" + std::to_string(i));
    for (const char* name : {"noop", "empty", "junk", "tests_only"})
      for (Repeat& r : many.of(name).repeats) r = repeat(kFail, failing);
    CHECK(many.verdict() == "sound");
    Case tests;
    for (Repeat& r : tests.of("tests_only").repeats) r = repeat(kFail, {"b", "new test"});
    CHECK(tests.verdict() ==
          "unsound: tests_only fails otherwise than noop (check tests: said so)");
  }

  TEST_CASE("four of five mutants have to die, and with fewer than five decided it is weak") {
    Case one_lives;
    one_lives.of("mutant-3") = three("mutant-3", kPass);
    CHECK(one_lives.verdict() == "sound");  // 4 of 5 is 0.80
    CHECK(one_lives.judged().mutants.survivors == std::vector<std::string>{"mutant-3"});
    Case two_live;
    two_live.of("mutant-3") = three("mutant-3", kPass);
    two_live.of("mutant-4") = three("mutant-4", kPass);
    CHECK(two_live.verdict() == "unsound: only 3 of 5 mutants die, 0.80 of them have to");
    Case undecided;
    undecided.of("mutant-3") = three("mutant-3", kError);
    CHECK(undecided.verdict() == "weak");
    CHECK(undecided.judged().mutants.undecided == 1);
    CHECK(is_good(undecided.judged()));
    Case chance;
    chance.of("mutant-3").repeats[0] = repeat(kPass);
    CHECK(chance.judged().mutants.undecided == 1);
    Case none;
    none.runs.resize(6);
    CHECK(none.verdict() == "weak");
    CHECK(!none.judged().mutants.lower95);
  }

  TEST_CASE("the lower limit of the share that dies") {
    struct Row {
      std::size_t killed, decided;
      double lower;
    };
    for (const Row& row :
         {Row{20, 20, 0.860891659332}, Row{18, 20, 0.717381475114}, Row{10, 10, 0.741134449107},
          Row{9, 10, 0.605836697563}, Row{18, 19, 0.773625750728}}) {
      Case c;
      c.runs.resize(6);
      for (std::size_t i = 0; i < row.decided; ++i)
        c.runs.push_back(three("mutant-" + std::to_string(i), i < row.killed ? kFail : kPass));
      const std::optional<double> lower = c.judged().mutants.lower95;
      REQUIRE(lower);
      CHECK(near(*lower, row.lower));
    }
  }

  TEST_CASE("nothing is said of what did not run, nor of a task without a reference") {
    Case stopped;
    stopped.of("mutant-2").repeats[1] = {std::nullopt, "an envelope was short"};
    CHECK(stopped.verdict() == "unjudged: mutant-2 has no outcome (an envelope was short)");
    Case spoiled;
    spoiled.of("noop").repeats[1] = {RunOutcome::kInvalid, "the disk was full"};
    CHECK(spoiled.verdict() == "unjudged: noop has no outcome (the disk was full)");
    Case bare;
    bare.contract.reference_patch.clear();
    bare.runs = {three("noop", kFail), three("empty", kFail), three("junk", kFail)};
    CHECK(bare.judged().cause == SelfcheckCause::kNoReference);
    CHECK(cannot_run_here(bare.contract, "there is no lua").verdict ==
          "unsound: reference cannot run here (there is no lua)");
  }

  TEST_CASE("results are kept, and hold while contract, image and settings are the same") {
    Case c;
    c.contract.digest = sha256("contract");
    c.of("mutant-3").what = "lib/x:1: 3 becomes 4";
    SelfcheckResults results{"pilot", {.seed = 20260307}, {c.judged()}, 1'840'000};
    const std::string text = to_json_text(results);
    const Result<SelfcheckResults> again = parse_selfcheck(text);
    REQUIRE_MESSAGE(again.ok(), again.error().detail);
    CHECK(to_json_text(*again) == text);
    const SelfcheckSettings settings = results.settings;
    CHECK(still_holds(*again, c.contract, settings) != nullptr);
    SelfcheckResults older = results;  // from before runners were shadowed
    std::erase_if(older.tasks[0].variants,
                  [](const VariantOutcomes& v) { return v.variant == "shadowed_runner"; });
    CHECK(still_holds(older, c.contract, settings) == nullptr);
    CHECK(still_holds(*again, c.contract, {.repeats = 4, .seed = 20260307}) == nullptr);
    Contract other = c.contract;
    other.digest = sha256("another version");
    CHECK(still_holds(*again, other, settings) == nullptr);
    other = c.contract;
    other.environment.image = "sha256:1";
    CHECK(still_holds(*again, other, settings) == nullptr);
    // Contract and campaign together say how often acceptance is repeated.
    CHECK(still_holds(*again, c.contract, settings, 1) == nullptr);
    results.tasks[0].rerun = 2;
    CHECK(still_holds(parse_selfcheck(to_json_text(results)).value(), c.contract, settings, 1) ==
          nullptr);
    CHECK(still_holds(results, c.contract, settings, 2) != nullptr);
    other = c.contract;
    other.rerun = 2;
    CHECK(still_holds(results, other, settings, 1) != nullptr);
    results.tasks[0].cause = SelfcheckCause::kCannotRun;
    CHECK(still_holds(results, c.contract, settings, 2) == nullptr);
  }

  TEST_CASE("acceptance that passed and then, repeated, did not is flaky and not unsound") {
    for (const char* name : {"reference", "noop", "junk", "early_exit"}) {
      CAPTURE(name);
      Case c;
      c.of(name) = three(name, kFail);
      c.of(name).repeats[1].passes = 2;
      CHECK(c.judged().cause == SelfcheckCause::kFlaky);
      CHECK(c.verdict() ==
            "flaky: " + std::string(name) +
                " passed acceptance 2 times and then did not (check tests: said so)");
    }
    // A mistake that the repetitions find is found.
    Case mutant;
    mutant.of("mutant-1").repeats[0].passes = 1;
    CHECK(mutant.verdict() == "sound");
  }

  TEST_CASE("an end with 0 that passes once makes a contract unsound") {
    for (const char* name : {"early_exit", "shadowed_runner"}) {
      Case c;
      c.of(name).repeats[1] = repeat(kPass);
      CHECK(c.verdict() == std::string("unsound: ") + name + " passed");
      CHECK(c.judged().cause == SelfcheckCause::kForged);
    }
  }

  TEST_CASE("a file of results that somebody spoiled is refused by its field") {
    Case c;
    const std::string text = to_json_text({"pilot", {}, {c.judged()}, 0});
    for (std::size_t n = 0; n + 1 < text.size(); n += 7)
      CHECK(!parse_selfcheck(text.substr(0, n)).ok());
    std::string other = text;
    other.replace(other.find("\"cause\": \"none\""), 15, "\"cause\": \"what\"");
    const Result<SelfcheckResults> refused = parse_selfcheck(other);
    REQUIRE(!refused.ok());
    CHECK(refused.error().detail.find("cause") != std::string::npos);
  }
}
