#include "common/pilot/screen.h"
#include "common/contract/contract.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace proctor;

namespace {

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

const Outcomes kPassed{
    {"", "success"}, {"tests", "pass"}, {"tests\nt6", "pass"}, {"tests\nt7", "pass"}};
const Outcomes kBroken{
    {"", "failure"}, {"tests", "fail"}, {"tests\nt6", "pass"}, {"tests\nt7", "fail"}};

ScreenTally tally(std::uint64_t usual, std::uint64_t otherwise = 0, const Outcomes& as = kPassed,
                  const Outcomes& other = kBroken) {
  ScreenTally out;
  for (std::uint64_t i = 0; i < usual; ++i) out.add(as);
  for (std::uint64_t i = 0; i < otherwise; ++i) out.add(other);
  return out;
}

Contract task() {
  Contract out;
  out.id = "perl-ini";
  out.digest = sha256("contract");
  return out;
}

ScreenState reference(ScreenTally alone, ScreenTally load) {
  return {kStateReference, std::move(alone), std::move(load)};
}
ScreenState snapshot(std::uint64_t alone = 60, std::uint64_t load = 60) {
  return {kStateSnapshot, tally(alone, 0, kBroken), tally(load, 0, kBroken)};
}
ScreenTask judged(ScreenState state, ScreenSettings settings = {}) {
  settings.repeats = static_cast<std::uint32_t>(state.alone.repeats());
  settings.load_repeats = static_cast<std::uint32_t>(state.load.repeats());
  return judge_screen(task(), {std::move(state), snapshot()}, settings);
}

}  // namespace

// Figures: PILOTS section 5, by SciPy or by exact arithmetic of whole numbers.
TEST_SUITE("screen") {
  TEST_CASE("what always comes out alike is stable, with the rate that is not excluded") {
    const ScreenTask t = judged(reference(tally(60), tally(60)));
    CHECK(t.verdict == ScreenVerdict::kStable);
    CHECK(t.why.empty());
    CHECK(!t.load_sensitive);
    CHECK(t.unstable.empty());
    CHECK(t.fisher == 1);
    REQUIRE(t.arms.size() == 4);
    CHECK(near(t.arms[0].upper95, 0.0487029133101));
    CHECK(t.arms[0].usual == "success");
    CHECK(t.arms[3].usual == "failure");
  }

  TEST_CASE("one that flickers under load is flaky, and the test is named") {
    const ScreenTask t = judged(reference(tally(60), tally(58, 2)));
    CHECK(t.verdict == ScreenVerdict::kFlaky);
    CHECK(t.why == "2 of 60 repeats of reference under load came out otherwise");
    CHECK(t.unstable == std::vector<std::string>{"t7"});
    CHECK(near(t.arms[1].upper95, 0.101235894924));
    REQUIRE(t.fisher);
    CHECK(near(*t.fisher, 0.247899159664));
    CHECK(!t.load_sensitive);  // 2 of 60 may be chance
  }

  TEST_CASE("acceptance that passed and then, repeated, did not agrees with nothing") {
    ScreenTally torn = tally(0);
    for (int i = 0; i < 60; ++i) torn.add(kBroken, true);
    ScreenTask t = judged(reference(torn, torn));
    CHECK(t.verdict == ScreenVerdict::kFlaky);
    REQUIRE(t.arms.size() == 4);
    CHECK(t.arms[0].discrepant == 60);
    CHECK(t.arms[0].torn == 60);
    CHECK(t.arms[0].upper95 == 0.5);
    CHECK(t.arms[0].usual == "failure");
    CHECK(t.unstable == std::vector<std::string>{"outcome"});
    CHECK(t.moved.empty());
    CHECK(
        t.why ==
        "60 of 60 repeats of reference alone came out otherwise (in 60 acceptance passed and then "
        "did not)");
    // One that fails at once has the same checks, and is another.
    torn = tally(0, 57);
    for (int i = 0; i < 3; ++i) torn.add(kBroken, true);
    t = judged(reference(tally(60), torn));
    CHECK(t.arms[1].discrepant == 3);
    CHECK(t.arms[1].torn == 3);
    const auto again = parse_screen(to_json_text(ScreenResults{"c", {}, {t}, 0}));
    REQUIRE(again.ok());
    CHECK(again->tasks[0].arms[1].torn == 3);
  }

  TEST_CASE("both tolerances are of the share, each of its own state") {
    struct Row {
      const char *suite, *organisation;
      std::uint64_t reference, snapshot;  // discrepant of 20
      bool flaky;
    };
    const Row rows[] = {
        {"0", "0", 0, 0, false},      {"0", "0", 1, 0, true},      {"0", "0", 0, 1, true},
        {"0.05", "0", 1, 0, false},   {"0.05", "0", 2, 0, true},   {"0.05", "0", 0, 1, true},
        {"0", "0.05", 0, 1, false},   {"0", "0.05", 1, 0, true},   {"0.049", "0", 1, 0, true},
        {"0.15", "0.1", 3, 2, false}, {"0.15", "0.1", 3, 3, true},
    };
    for (const Row& row : rows) {
      CAPTURE(row.suite);
      CAPTURE(row.organisation);
      CAPTURE(row.reference);
      CAPTURE(row.snapshot);
      ScreenSettings settings;
      settings.tolerance = row.suite;
      settings.snapshot_tolerance = row.organisation;
      const ScreenTask t =
          judge_screen(task(),
                       {reference(tally(20 - row.reference, row.reference),
                                  tally(20 - row.reference, row.reference)),
                        {kStateSnapshot, tally(20 - row.snapshot, row.snapshot, kBroken, kPassed),
                         tally(20, 0, kBroken)}},
                       settings);
      CHECK((t.verdict == ScreenVerdict::kFlaky) == row.flaky);
    }
  }

  TEST_CASE("fewer repeats than were asked for are no verdict, but what flickered did") {
    ScreenTask t = judge_screen(task(), {reference(tally(60), tally(0)), snapshot()}, {});
    CHECK(t.verdict == ScreenVerdict::kUnjudged);
    CHECK(t.why == "reference under load has 0 of 60 repeats");
    CHECK(t.lack.empty());
    t = judge_screen(task(), {reference(tally(60), tally(59)), snapshot()}, {});
    CHECK(t.verdict == ScreenVerdict::kUnjudged);
    t = judge_screen(task(), {reference(tally(60), tally(58, 1)), snapshot()}, {});
    CHECK(t.verdict == ScreenVerdict::kFlaky);
    CHECK(judge_screen(task(), {}, {}).verdict == ScreenVerdict::kUnjudged);
    // One that an earlier version called stable is screened again.
    t = judge_screen(task(), {reference(tally(0), tally(0)), snapshot(0, 0)}, {});
    t.verdict = ScreenVerdict::kStable;
    CHECK_FALSE(still_holds({"c", {}, {t}, 0}, task(), {}));
  }

  TEST_CASE("load is blamed where chance is not enough, tolerated or not") {
    ScreenSettings lenient;
    lenient.tolerance = "0.5";
    ScreenTask t = judged(reference(tally(30), tally(25, 5)), lenient);
    REQUIRE(t.fisher);
    CHECK(near(*t.fisher, 0.0260927743087));
    CHECK(t.load_sensitive);
    CHECK(t.verdict == ScreenVerdict::kFlaky);
    CHECK(t.why == "reference comes out otherwise more often under load (p 0.026)");
    t = judged(reference(tally(19, 1), tally(14, 6)), lenient);
    CHECK(near(t.fisher.value_or(0), 0.045738045738));
    CHECK(t.load_sensitive);
    t = judged(reference(tally(20), tally(17, 3)), lenient);
    CHECK(near(t.fisher.value_or(0), 0.115384615385));
    CHECK(!t.load_sensitive);
    CHECK(t.verdict == ScreenVerdict::kUndecided);
  }

  TEST_CASE("what fails every time under load and never alone is no stable task") {
    const ScreenTask t = judged(reference(tally(60), tally(60, 0, kBroken)));
    CHECK(t.arms[1].discrepant == 0);
    CHECK(t.verdict == ScreenVerdict::kFlaky);
    CHECK(t.load_sensitive);
    CHECK(t.why == "reference usually comes out otherwise under load than alone");
  }

  TEST_CASE("too few repeats decide nothing, and so many would") {
    const ScreenTask t = judged(reference(tally(20), tally(20)));
    CHECK(t.verdict == ScreenVerdict::kUndecided);
    CHECK(t.why == "reference alone may still come out otherwise in up to 13.9 %");
    ScreenSettings settings;
    settings.bound = "0.14";
    CHECK(judged(reference(tally(20), tally(20)), settings).verdict == ScreenVerdict::kStable);
    CHECK(clean_repeats_for(.10) == 29);
    CHECK(clean_repeats_for(.05) == 59);
    CHECK(clean_repeats_for(.02) == 149);
    CHECK(clean_repeats_for(.01) == 299);
  }

  TEST_CASE("the usual outcome is the most frequent, of equal ones the first") {
    ScreenTally t = tally(2, 2);
    CHECK(t.usual() == kPassed);
    CHECK(t.discrepant() == 2);
    t.add(kBroken);
    CHECK(t.usual() == kBroken);
    CHECK(t.discrepant() == 2);
    CHECK(ScreenTally().discrepant() == 0);
  }

  TEST_CASE("of what came out otherwise the smallest is named") {
    ScreenTally t = tally(3);
    t.add({{"", "failure"}, {"tests", "fail"}, {"tests\nt6", "pass"}});  // t7 is not there
    CHECK(t.unstable() == std::vector<std::string>{"t7"});
    t = tally(3);
    t.add({{"", "failure"}, {"tests", "fail"}, {"tests\nt6", "pass"}, {"tests\nt7", "pass"}});
    CHECK(t.unstable() == std::vector<std::string>{"check tests"});
    t = tally(3);
    Outcomes refused = kPassed;
    refused[""] = "failure";
    t.add(refused);
    CHECK(t.unstable() == std::vector<std::string>{"outcome"});
  }

  TEST_CASE("a repeat without an outcome leaves it unjudged, but for what has been seen") {
    ScreenTally lost = tally(59);
    lost.lose("no money was left for it");
    ScreenTask t = judged(reference(tally(60), lost));
    CHECK(t.verdict == ScreenVerdict::kUnjudged);
    CHECK(t.why == "reference under load has no outcome (no money was left for it)");
    lost = tally(30, 1);
    lost.lose("stopped");
    CHECK(judged(reference(tally(60), lost)).verdict == ScreenVerdict::kFlaky);
    ScreenTally none;
    none.lose("stopped");
    CHECK(judged(reference(none, none)).verdict == ScreenVerdict::kUnjudged);
    CHECK(judged(reference(none, none)).arms[0].upper95 == 0.5);
    CHECK(not_screened_here(task(), "there is no lua").why ==
          "it cannot run here (there is no lua)");
  }

  TEST_CASE("without a reference the solved state was not seen") {
    const ScreenTask t = judge_screen(task(), {snapshot()}, {});
    CHECK(t.verdict == ScreenVerdict::kUndecided);
    CHECK(t.why.starts_with("it has no reference_patch"));
  }

  TEST_CASE("what a rate that is not excluded could still do") {
    CHECK(near(chance_to_spoil(0.0487029133101, 6), 0.258865550893));
    CHECK(chance_to_spoil(0, 6) == 0);
    std::vector<ScreenTask> forty(40, judged(reference(tally(60), tally(60))));
    forty[7] = judged(reference(tally(60), tally(58, 2)));
    forty.push_back(not_screened_here(task(), "no lua"));  // not judged, not counted
    const FlakyShare share = flaky_share(forty);
    CHECK(share.flaky == 1);
    CHECK(share.judged == 40);
    CHECK(near(share.low, 0.000632744932049));
    CHECK(near(share.high, 0.131585858483));
    CHECK(flaky_share({}).high == 1);
  }

  TEST_CASE("flaky and undecided tasks are put into quarantine with their reasons") {
    ScreenTask stable = judged(reference(tally(60), tally(60)));
    ScreenTask flaky = judged(reference(tally(60), tally(58, 2)));
    ScreenTask undecided = judged(reference(tally(20), tally(20)));
    undecided.id = "few";
    CHECK(quarantine_text({stable, not_screened_here(task(), "no lua")}).empty());
    CHECK(quarantine_text({stable, flaky, undecided}) ==
          "perl-ini  flaky: 2 of 60 repeats of reference under load came out otherwise\n"
          "few  undecided: reference alone may still come out otherwise in up to 13.9 %\n");
  }

  TEST_CASE("results are kept, and hold while contract, image and counts are the same") {
    ScreenResults results{
        "pilot",
        {},
        {judged(reference(tally(60), tally(58, 2))), not_screened_here(task(), "no")},
        7};
    results.tasks[1].id = "other";
    const std::string text = to_json_text(results);
    const Result<ScreenResults> again = parse_screen(text);
    REQUIRE_MESSAGE(again.ok(), again.error().detail);
    CHECK(to_json_text(*again) == text);
    const auto holds = still_holds(*again, task(), {});
    REQUIRE(holds);
    CHECK(holds->verdict == ScreenVerdict::kFlaky);
    // Another tolerance is another verdict of the same repeats.
    ScreenSettings lenient;
    lenient.tolerance = lenient.bound = "0.2";
    CHECK(still_holds(*again, task(), lenient).value().verdict == ScreenVerdict::kStable);
    ScreenSettings more;
    more.repeats = 61;
    CHECK(!still_holds(*again, task(), more));
    more = {};
    more.load_repeats = 61;
    CHECK(!still_holds(*again, task(), more));
    Contract other = task();
    other.digest = sha256("another version");
    CHECK(!still_holds(*again, other, {}));
    other = task();
    other.environment.image = "sha256:1";
    CHECK(!still_holds(*again, other, {}));
    other = task();
    other.id = "other";
    CHECK(!still_holds(*again, other, {}));  // it could not be judged
    // Contract and campaign together say how often acceptance is repeated.
    CHECK(!still_holds(*again, task(), {}, 1));
    results.tasks[0].rerun = 1;
    CHECK(still_holds(parse_screen(to_json_text(results)).value(), task(), {}, 1));
    other = task();
    other.rerun = 1;
    CHECK(still_holds(results, other, {}));
    CHECK(!still_holds(results, other, {}, 2));
  }

  TEST_CASE("a file of results that somebody spoiled is refused by its field") {
    const std::string text =
        to_json_text({"pilot", {}, {judged(reference(tally(9), tally(9)))}, 0});
    for (std::size_t n = 0; n + 1 < text.size(); n += 7)
      CHECK(!parse_screen(text.substr(0, n)).ok());
    struct Row {
      const char *from, *to, *field;
    };
    const Row rows[] = {
        {"\"undecided\"", "\"fine\"", "verdict"},
        {"\"arm\": \"serial\"", "\"arm\": \"idle\"", "arm"},
        {"\"discrepant\": 0", "\"discrepant\": 10", "discrepant"},
        {"\"repeats\": 9", "\"repeats\": 10001", "repeats"},
        {"\"state\": \"reference\"", "\"state\": \"mutant\"", "state"},
        {"proctor-flakiness-1", "proctor-flakiness-2", "format"},
    };
    for (const Row& row : rows) {
      std::string other = text;
      other.replace(other.find(row.from), std::string(row.from).size(), row.to);
      const Result<ScreenResults> refused = parse_screen(other);
      CAPTURE(row.to);
      REQUIRE(!refused.ok());
      CHECK(refused.error().detail.find(row.field) != std::string::npos);
    }
    // A limit that was made smaller is that of its counts all the same.
    std::string other = text;
    const std::size_t at = other.find("\"upper95\": \"") + 12;
    other.replace(at, other.find('"', at) - at, "0.001");
    CHECK(parse_screen(other).value().tasks[0].arms[0].upper95 > .2);
  }
}
