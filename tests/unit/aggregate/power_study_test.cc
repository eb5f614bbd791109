#include <doctest/doctest.h>

#include "common/base/json.h"
#include "coordinator/aggregate/power_study.h"
#include "tests/support/json_schema.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

PowerInput asked() {
  PowerInput in;
  in.campaign = "pilot-a";
  in.comparisons = {{"agent-a", "agent-b"}};
  in.rho_low = .15;
  in.rho_high = .85;
  in.r = .3;
  in.runs = 4;
  in.tasks = 100;
  return in;
}

PowerStudy study(const PowerInput& in) {
  Result<PowerStudy> out = study_power(in);
  REQUIRE(out.ok());
  return std::move(out).value();
}

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

const Json& member(const Json& list, const char* key, const std::string& value) {
  for (const Json& item : list)
    if (item.at(key) == value) return item;
  FAIL("nothing is called " << value);
  return list;
}

const std::string kOf(64, 'a');

}  // namespace

TEST_SUITE("power study") {
  TEST_CASE("twice the runs are counted at the point that is least favourable with them") {
    PowerInput in = asked();
    in.runs = 1;
    const PowerStudy once = study(in);
    in.runs = 2;
    const PowerStudy twice = study(in);
    REQUIRE(once.worst != twice.worst);
    REQUIRE(twice.needs_tasks.has_value());
    CHECK(says(render_power_text(once), "Twice the runs (2 of each method a task) help"));
    CHECK(says(render_power_text(once), ": " + std::to_string(*twice.needs_tasks) + " tasks"));
  }

  TEST_CASE("the least favourable point decides, and what would do is said") {
    const PowerStudy s = study(asked());
    REQUIRE(s.points.size() == 2);
    CHECK(s.worst == 1);
    CHECK_FALSE(s.supported);
    CHECK(s.needs_tasks == 246);
    CHECK(twelve_digits(s.needs_difference.value()) == "0.156980408047");
    const std::string text = render_power_text(s);
    CAPTURE(text);
    CHECK(says(text, "Power 0.428 to show a difference of 0.1 (0.5 against 0.4;"));
    CHECK(says(text, "not enough, 0.8 was asked"));
    CHECK(says(text, "246 tasks instead of 100"));
    CHECK(says(text, "A difference of 0.157 instead of 0.1"));
    CHECK(says(text, "Twice the runs (8 of each method a task) help little: 238 tasks"));
    PowerInput more = asked();
    more.tasks = 246;
    CHECK(study(more).supported);
    CHECK_FALSE(study(more).needs_tasks.has_value());
    more.tasks = 245;
    CHECK_FALSE(study(more).supported);
  }

  TEST_CASE("without a number of tasks it is as many as it takes") {
    PowerInput in = asked();
    in.tasks.reset();
    const PowerStudy s = study(in);
    CHECK(s.tasks == 246);
    CHECK(s.supported);
    in.effect = 1e-6;
    const Result<PowerStudy> none = study_power(in);
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == Errc::kInvalid);
  }

  TEST_CASE("what the report's test can never call a difference has no power") {
    PowerInput in = asked();
    in.p = .1;
    in.effect = .8;
    in.rho_low = in.rho_high = .5;
    in.r = .1;
    in.tasks = 5;
    const PowerStudy few = study(in);
    CHECK_FALSE(few.supported);
    CHECK(few.points[0].least() == 0);
    CHECK(few.fewest_tasks == 6);
    const std::string text = render_power_text(few);
    CAPTURE(text);
    CHECK(says(text, "Power 0.000"));
    CHECK(says(text,
               "With 5 tasks no outcome whatever is called a difference: the report's exact p "
               "is 0.0625 or more. 6 tasks are the fewest."));
    CHECK(says(text, "tasks instead of 5"));
    in.tasks = few.needs_tasks;
    REQUIRE(in.tasks.has_value());
    CHECK(study(in).supported);
    in.tasks = *in.tasks - 1;
    CHECK_FALSE(study(in).supported);
    // Several comparisons share alpha.
    in.tasks = 6;
    in.family = 3;
    const PowerStudy shared = study(in);
    CHECK(shared.is_hopeless());
    CHECK(says(render_power_text(shared),
               "is 0.09375 or more, adjusted for all comparisons. 7 tasks"));
    CHECK(says(render_power_text(shared), "two-sided 0.05 over 3 comparisons"));
    const Json json = parse_json(render_power_json(shared)).value();
    CHECK(json.at("family") == 3);
    CHECK(json.at("points").at(0).at("power_flips") == "0");
    CHECK(JsonSchema("power_analysis").violations(json) == "");
    CHECK(JsonSchema("power_analysis_compute_report")
              .violations(parse_json(render_power_values_json(shared, kOf)).value()) == "");
  }

  TEST_CASE("few tasks have the power of sign flips, which is below that of the t test") {
    PowerInput in = asked();
    in.p = .1;
    in.effect = .7;
    in.rho_low = in.rho_high = .5;
    in.r = .16;
    double before = 0;
    for (const std::uint64_t tasks : {6U, 7U, 8U}) {
      CAPTURE(tasks);
      in.tasks = tasks;
      const PowerStudy s = study(in);
      REQUIRE(s.points[0].flips.has_value());
      CHECK(*s.points[0].flips < s.points[0].power);
      CHECK(s.points[0].least() == *s.points[0].flips);
      CHECK(before < *s.points[0].flips);
      CHECK(s.supported == (tasks == 8));
      CHECK(says(render_power_text(s), tasks == 8 ? "exact sign flips" : "8 tasks instead of"));
      before = *s.points[0].flips;
    }
  }

  TEST_CASE("looks cost power, and count for the decision") {
    PowerInput in = asked();
    in.looks.emplace(PlannedLooks{{2, 3, 4}});
    const PowerStudy s = study(in);
    CHECK(twelve_digits(s.points.at(1).sequential.value()) == "0.413903573546");
    CHECK(s.needs_tasks == 253);
    CHECK(says(render_power_text(s), "after 2 runs: |z| 2.9626"));
    const Json json = parse_json(render_power_json(s)).value();
    CHECK(json.at("looks").at("t") == Json::array({"0.5", "0.75", "1"}));
    CHECK(JsonSchema("power_analysis").violations(json) == "");
  }

  TEST_CASE("an earlier stage's variance is a point of its own") {
    PowerInput in = asked();
    in.rho_low = in.rho_high = .15;
    in.runs = 4;
    in.tasks = 120;
    in.pilot.emplace(
        PilotVariance{8, 4, 0.0669642857143, 0.135416666667, 0.197916666667, 0.122634883014});
    in.pilot_from = "earlier";
    in.looks.emplace(PlannedLooks{{2, 4}});
    const PowerStudy s = study(in);
    REQUIRE(s.points.size() == 2);
    CHECK_FALSE(s.points[1].design.has_value());
    CHECK(s.points[1].variance == doctest::Approx(0.122634883014).epsilon(1e-9));
    CHECK(s.points[1].power == doctest::Approx(0.873442502531).epsilon(1e-9));
    CHECK(says(render_power_text(s), "variance of earlier"));
    const Json json = parse_json(render_power_json(s)).value();
    CHECK(json.at("points").at(1).at("source") == "pilot");
    CHECK(json.at("points").at(1).at("rho").is_null());
    CHECK(JsonSchema("power_analysis").violations(json) == "");
    const Json values = parse_json(render_power_values_json(s, kOf)).value();
    CHECK(JsonSchema("power_analysis_compute_report").violations(values) == "");
    CHECK(member(values.at("values"), "id", "v[1]").at("formula") == "v_up");
  }

  TEST_CASE("McNemar's test of one run a task is exact, and its need too") {
    PowerInput in = asked();
    in.test = PowerInput::Test::kMcNemar;
    in.rho_low = in.rho_high = .5;
    in.r = .8;
    in.runs = 1;
    in.tasks = 231;
    const PowerStudy s = study(in);
    CHECK(twelve_digits(s.points.at(0).power) == "0.763909104331");
    CHECK(twelve_digits(s.points.at(0).mid_p.value()) == "0.795868746684");
    CHECK_FALSE(s.supported);
    REQUIRE(s.needs_tasks.has_value());
    in.tasks = s.needs_tasks;
    CHECK(study(in).supported);
    CHECK(JsonSchema("power_analysis").violations(parse_json(render_power_json(s)).value()) == "");
  }

  TEST_CASE("the files say what they were computed from, and fit their schemas") {
    PowerInput in = asked();
    in.p = .4;
    in.rho_low = in.rho_high = .5;
    in.r = .5;
    in.budgets = {1'000'000, 100'000'000, 200'000'000, 400'000'000, 800'000'000};
    in.costs = {400'000, 1'200'000, 900'000};
    in.tasks_max = 120;
    const PowerStudy s = study(in);
    REQUIRE(s.curve.size() == 4);
    const Json curve = parse_json(render_power_curve_json(s)).value();
    CHECK(JsonSchema("combined_cost_precision_tradeoff").violations(curve) == "");
    CHECK(curve.at("points").at(2) == Json{{"budget_micros", 400'000'000},
                                           {"cost_micros", 395'600'000},
                                           {"half_width", "0.105863892314"},
                                           {"k", 2},
                                           {"mde", "0.14916820389"},
                                           {"n", 86}});
    const std::string svg = render_power_curve_svg(s);
    CHECK(says(svg, "86 x 2"));
    CHECK(svg.ends_with("</svg>\n"));
    const std::string text = render_power_text(s);
    CAPTURE(text);
    CHECK(says(text, "1.00"));
    CHECK(says(text, "none"));
    CHECK(says(text, "395.60"));
    const Json values = parse_json(render_power_values_json(s, kOf)).value();
    CHECK(JsonSchema("power_analysis_compute_report").violations(values) == "");
    CHECK(member(values.at("values"), "id", "power_exact[0]").at("formula") == "power_exact_t");
  }

  TEST_CASE("power moves as theory says, and identities hold") {
    for (const double r : {.3, .8}) {
      PowerInput in = asked();
      in.rho_low = in.rho_high = .5;
      in.r = r;
      in.runs = 3;
      const PowerStudy s = study(in);
      const Json sweeps = parse_json(render_power_sweeps_json(s, kOf)).value();
      CHECK(JsonSchema("analysis_monotonicity").violations(sweeps) == "");
      CHECK(sweeps.at("ok") == true);
      CHECK(member(sweeps.at("sweeps"), "over", "rho").at("direction") == (r < .7 ? "down" : "up"));
      const SimulatedPower drawn{.rejected = 799, .sum = 0};
      const Json checks =
          parse_json(
              render_power_checks_json(s, kOf, r < .7 ? std::nullopt : std::optional(drawn), 1000))
              .value();
      CHECK(JsonSchema("sanity_compute_result").violations(checks) == "");
      CHECK(checks.at("ok") == true);
      if (.7 < r) {
        const Json& one = member(checks.at("checks"), "id", "v1_is_psi_minus_delta2");
        CHECK(one.at("found") == "0.294040820577");
        CHECK(member(checks.at("checks"), "id", "simulation").at("ok") == true);
        const SimulatedPower off{.rejected = 700, .sum = 0};
        CHECK(parse_json(render_power_checks_json(s, kOf, off, 1000)).value().at("ok") == false);
      }
    }
  }

  TEST_CASE("where repositories are the unit, more tasks of them do not help for ever") {
    PowerInput in = asked();
    in.rho_low = in.rho_high = .5;
    in.effect = .15;
    const auto with = [&](std::uint64_t repositories, double tasks, double spread) {
      in.tasks = repositories;
      in.repositories = PowerInput::Repositories{tasks, spread};
      return study(in);
    };
    const PowerStudy alike = with(40, 2.5, 0);
    PowerInput of_tasks = in;
    of_tasks.repositories.reset();
    of_tasks.tasks = 100;
    const PowerPoint tasks = study(of_tasks).points[0];
    // A repository of 2.5 tasks that are not alike has 2.5 times the weight of a task.
    CHECK(alike.points[0].variance == doctest::Approx(tasks.variance / 2.5));
    CHECK(alike.points[0].power_normal == doctest::Approx(tasks.power_normal));
    CHECK(alike.points[0].power < tasks.power);
    CHECK_FALSE(alike.points[0].flips);
    const PowerStudy varied = with(40, 2.5, .2);
    CHECK(varied.points[0].variance == doctest::Approx(tasks.variance / 2.5 + .04));
    CHECK(varied.points[0].power < alike.points[0].power);
    CHECK(with(8, 1e6, .2).points[0].power < .5);
    const PowerStudy few = with(4, 12.5, .1);
    CHECK(few.is_hopeless());
    CHECK(few.points[0].least() == 0);
    CHECK(few.fewest_tasks == 6);
    const std::string text = render_power_text(few);
    CAPTURE(text);
    CHECK(says(text, "4 repositories of 12.5 tasks"));
    CHECK(says(text, "6 repositories are the fewest"));
    CHECK(says(text, "unit: task"));
    const Json analysis = parse_json(render_power_json(few)).value();
    CHECK(JsonSchema("power_analysis").violations(analysis) == "");
    CHECK(analysis.at("repositories") == Json{{"tasks_of_each", "12.5"}, {"spread", "0.1"}});
    const Json values = parse_json(render_power_values_json(few, kOf)).value();
    CHECK(JsonSchema("power_analysis_compute_report").violations(values) == "");
    CHECK(member(values.at("values"), "id", "v[0]").at("formula") == "repository_v");
    CHECK(parse_json(render_power_sweeps_json(with(1, 50, .1), kOf)).ok());
  }

  TEST_CASE("numbers have twelve digits and no exponent") {
    CHECK(twelve_digits(0.1) == "0.1");
    CHECK(twelve_digits(0) == "0");
    CHECK(twelve_digits(1) == "1");
    CHECK(twelve_digits(100) == "100");
    CHECK(twelve_digits(-0.25) == "-0.25");
    CHECK(twelve_digits(1e-6) == "0.000001");
    CHECK(twelve_digits(2.0 / 3) == "0.666666666667");
    CHECK(twelve_digits(395.6) == "395.6");
  }
}
