#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "common/base/csv.h"
#include "common/base/json.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/warnings.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using proctor::testing::Runs;
using proctor::testing::small_campaign;
using proctor::testing::usd_micros;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::vector<std::string>> records(const std::string& csv) {
  std::vector<std::vector<std::string>> out;
  CsvReader reader(csv);
  std::vector<std::string_view> fields;
  for (;;) {
    const auto more = reader.next(fields);
    REQUIRE(more.ok());
    if (!*more) return out;
    out.emplace_back(fields.begin(), fields.end());
  }
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("the text shows the tables and explains every word of them") {
    const std::string text = render_text(build_report(small_campaign()));
    CHECK(has(text,
              "Campaign pilot-12ab34cd56ef: 12 runs planned, 7 ended, 1 parked, 2 open, "
              "1 cancelled, 1 removed. Spent 0.700014 USD.\n"));
    CHECK(has(
        text,
        "method  stratum        planned  scorable  success  satisfied  failure  acceptance error  "
        "invalid  parked  open  cancelled  removed\n"));
    CHECK(has(
        text,
        "alpha   all                  8         5        3          3        1                 1  "
        "      1       1     1          0        0\n"));
    CHECK(has(text, "60.0 % [23.1, 88.2]"));
    CHECK(has(text, "cli/alpha/r4: stage:main short by 0.250001 USD\n"));
    CHECK(has(text, "alpha: 4 completed, 1 agent_timeout, 1 infrastructure\n"));
    CHECK(has(text, "use the success rate: acceptance\n    errors stay in its denominator"));
    CHECK(has(text, "weak checks pass wrong"));
    // Each column of each table is a word of the legend.
    const std::string legend = text.substr(text.find("What the words mean"));
    for (const char* word : {"method",         "stratum",      "planned",    "scorable",
                             "success",        "satisfied",    "failure",    "acceptance error",
                             "invalid",        "parked",       "open",       "cancelled",
                             "removed",        "success rate", "error rate", "invalid rate",
                             "bounds",         "over tasks",   "model",      "execution",
                             "human",          "overhead",     "total",      "per success",
                             "median, longest"}) {
      CAPTURE(std::string(word));
      CHECK(has(legend, "\n  " + std::string(word) + "  "));
    }
  }

  TEST_CASE("what an agent said never begins a line as an entry does") {
    std::string out;
    aggregate::append_wrapped(
        out, "  ", "t/m/r1: it said " + std::string(90, '-') + " t/noop/r1: its task is broken");
    CHECK(out == "  t/m/r1: it said\n      " + std::string(90, '-') +
                     "\n      t/noop/r1: its task is broken\n");
    out.clear();
    aggregate::append_wrapped(out, "  * ", std::string(97, 'a') + " b");
    CHECK(out == "  * " + std::string(97, 'a') + "\n    b\n");
  }

  TEST_CASE("the words are left out where nobody asked, and notes stay beside the tables") {
    const std::string text = render_text(build_report(small_campaign()), Words::kLeftOut);
    CHECK(!has(text, "What the words mean"));
    CHECK(has(text, "How to read it"));
  }

  TEST_CASE("a stratum of one level does not repeat what stands under all") {
    Runs runs;
    runs.ended("lib", "go", "alpha", RunOutcome::kSuccess);
    runs.ended("cli", "go", "alpha", RunOutcome::kFailure);
    ReportInput input{"c", "USD", {"language"}, runs.records, 0.05};
    const CampaignReport report = build_report(input);
    CHECK(report.rows.size() == 2);  // the files for programs have every row
    CHECK(!has(render_progress_text(report), "language=go"));
    const std::string text = render_text(report, Words::kLeftOut);
    CHECK_MESSAGE(has(text, "\nEvery task: language=go\n"), text);
    CHECK_MESSAGE(!has(text, "alpha   language=go"), text);
    runs.ended("cli", "rust", "alpha", RunOutcome::kFailure);
    input.runs = runs.records;
    const std::string two = render_text(build_report(input), Words::kLeftOut);
    CHECK(has(two, "language=go"));
    CHECK(!has(two, "Every task:"));
  }

  TEST_CASE("each task has its row, and its cell under each method") {
    const std::string text = render_text(build_report(small_campaign()), Words::kLeftOut);
    CHECK_MESSAGE(has(text,
                      "Tasks by methods (success of scorable runs)\n\n"
                      "task              alpha   beta\n"
                      "------------------------------\n"
                      "cli                 1/3      -\n"
                      "lib                 2/2    0/1\n\n"
                      "all, over tasks  66.7 %  0.0 %\n"),
                  text);
    CHECK_MESSAGE(has(text, "task  planned  scorable  success  failure  acceptance error"), text);
    CHECK_MESSAGE(has(text, "lib         5         3        2        1                 0        1"),
                  text);
  }

  TEST_CASE("patches that are judged again show the outcome then beside the one here") {
    ReportInput input = small_campaign();
    CHECK(build_report(input).moves.empty());
    CHECK(render_text(build_report(input)).starts_with("Campaign " + input.campaign + ": "));
    CHECK(!has(render_text(build_report(input), Words::kLeftOut), "judged again"));
    for (const std::size_t run : {0U, 1U, 2U}) input.runs[run].old_outcome = RunOutcome::kSuccess;
    input.runs[3].old_outcome = RunOutcome::kAcceptanceError;  // a failure here
    input.runs[6].old_outcome = RunOutcome::kFailure;          // parked here
    input.again = "replay of small-0123";
    const CampaignReport report = build_report(std::move(input));
    const std::vector<Transition>& moves = report.moves;
    REQUIRE(moves.size() == 3);
    CHECK(moves[0].method == "alpha");
    CHECK(moves[0].was == "acceptance_error");
    CHECK(moves[0].is == "failure");
    CHECK(moves[1].is == "parked");
    CHECK(moves[2].is == "success");
    CHECK(moves[2].runs == 3);
    const std::string text = render_text(report, Words::kLeftOut);
    CHECK_MESSAGE(has(text,
                      "method  old               new      runs\n"
                      "---------------------------------------\n"
                      "alpha   acceptance_error  failure     1\n"
                      "alpha   failure           parked      1\n"
                      "alpha   success           success     3\n"),
                  text);
    CHECK(text.starts_with("Campaign " + report.campaign + ", a replay of small-0123: "));
    CHECK(has(text, "  " + report.runs[3].name + ": acceptance_error -> failure\n"));
    CHECK(has(text, "  " + report.runs[6].name + ": failure -> parked\n"));
    CHECK(!has(text, "success -> success"));
    CHECK(csv_of(aggregate::transition_columns(), moves) ==
          "method,old_outcome,outcome,runs\nalpha,acceptance_error,failure,1\n"
          "alpha,failure,parked,1\nalpha,success,success,3\n");
  }

  TEST_CASE("runs that ended before their task was removed are in a table of their own") {
    Runs runs;
    runs.ended("lib", "go", "alpha", RunOutcome::kSuccess);
    RunRecord& gone = runs.ended("bad", "go", "alpha", RunOutcome::kFailure);
    gone.state = RunRecord::State::kRemoved;
    gone.ended_before_removal = true;
    const CampaignReport report = build_report({"c", "USD", {"language"}, runs.records, 0.05});
    CHECK(report.rows[0].scorable() == 1);
    CHECK(report.rows[0].removed == 1);
    CHECK(*report.rows[0].success_rate.rate == doctest::Approx(1));
    const std::string text = render_text(report, Words::kLeftOut);
    CHECK_MESSAGE(has(text, "Ended runs of removed tasks"), text);
    CHECK_MESSAGE(has(text, "bad   alpha         0        1                 0        0  0.100001"),
                  text);
    CHECK(report.total.cost.total().micros() == 200'002);  // the money is gone all the same
  }

  TEST_CASE("a row without scorable runs shows dashes and no rate") {
    Runs runs;
    runs.add("lib", "go", "alpha");
    const std::string text = render_text(build_report({"c", "USD", {}, {}, 0.05}));
    CHECK(has(text, "0 runs planned"));
    ReportInput input{"c", "USD", {"language"}, runs.records, 0.05};
    const std::string dashes = render_text(build_report(input));
    CHECK_MESSAGE(
        has(dashes,
            "alpha   all                 -       -           -             -           -\n"),
        dashes);
    CHECK(!has(dashes, "Why runs ended"));
    CHECK(!has(dashes, "Parked runs"));
  }

  TEST_CASE("names in other scripts stay aligned and control bytes are shown, not sent") {
    Runs runs;
    runs.add("t", "\xC3\xA9\xC3\xA9", "m\xC3\xA9thode");
    runs.add("t", "go", "x\x1b[2J");
    const std::string text =
        render_text(build_report({"c", "USD", {"language"}, runs.records, 0.05}));
    CHECK(!has(text, "\x1b"));
    CHECK(has(text, "x\\x1b[2J"));
    CHECK(has(text, "m\xC3\xA9thode   language=\xC3\xA9\xC3\xA9        1"));
  }

  TEST_CASE("the JSON of schema 1 gives each row its runs with the digests of their reports") {
    const auto json = parse_json(render_json(build_report(small_campaign()), JsonForm::kFirst));
    REQUIRE(json.ok());
    const Json& row = (*json)["rows"][0];
    CHECK(row["method"] == "alpha");
    CHECK(row["stratum"].is_null());
    CHECK(row["success_rate"]["x"] == 3);
    CHECK(row["success_rate"]["n"] == 5);
    CHECK(row["success_rate"]["rate"] == 0.6);
    CHECK(row["cost"]["total"]["usd"] == "0.600013");
    CHECK(row["cost"]["total"]["micro_usd"] == 600013);
    CHECK(row["cost_per_success"]["micro_usd"] == 200005);
    REQUIRE(row["runs"].size() == 8);
    CHECK(row["runs"][0]["run"] == "lib/alpha/r1");
    CHECK(row["runs"][0]["report"] == sha256("lib/alpha/r1").hex());
    CHECK(row["runs"][5]["report"].is_null());
    CHECK((*json)["rows"][1]["cost_per_success"].is_null());
    // What a row counts can be counted again from the runs.
    for (const Json& r : (*json)["rows"]) {
      std::size_t successes = 0;
      for (const Json& behind : r["runs"])
        for (const Json& run : (*json)["runs"])
          if (run["run"] == behind["run"] && run["outcome"] == "success") ++successes;
      CHECK(r["success"] == successes);
    }
    CHECK((*json)["runs"][6]["parked"]["short_by"]["micro_usd"] == 250001);
    CHECK((*json)["definitions"].contains("scorable"));
    CHECK((*json)["notes"].size() ==
          report_notes().size() + report_limits(build_report(small_campaign())).size());
  }

  TEST_CASE("the CSV has one record per row with money exact to the millionth") {
    const auto rows = records(render_csv(build_report(small_campaign())));
    REQUIRE(rows.size() == 7);
    const auto column = [&](const std::string& name) {
      const auto found = std::ranges::find(rows[0], name);
      REQUIRE(found != rows[0].end());
      return static_cast<std::size_t>(found - rows[0].begin());
    };
    for (const auto& row : rows) CHECK(row.size() == rows[0].size());
    CHECK(rows[1][column("stratum")] == "all");
    CHECK(rows[1][column("success_rate")] == "0.6");
    CHECK(rows[1][column("total_usd")] == "0.600013");
    CHECK(rows[1][column("per_success_usd")] == "0.200005");
    CHECK(rows[2][column("per_success_usd")].empty());
    CHECK(rows[3][column("stratum")] == "language");
    CHECK(rows[3][column("value")] == "go");
  }

  TEST_CASE("the CSV of runs has one record per run with its report") {
    const auto rows = records(render_runs_csv(build_report(small_campaign())));
    REQUIRE(rows.size() == 13);
    for (const auto& row : rows) CHECK(row.size() == rows[0].size());
    CHECK(rows[0][4] == "language");
    CHECK(rows[1][1] == "lib/alpha/r1");
    const auto column = [&](const std::string& name) {
      return static_cast<std::size_t>(std::ranges::find(rows[0], name) - rows[0].begin());
    };
    CHECK(rows[1].at(column("report")) == sha256("lib/alpha/r1").hex());
    CHECK(rows[1].at(column("self_reported_usd")) == "0.000000");
    CHECK(rows[7][5] == "parked");
    CHECK(rows[7][6].empty());
  }

  TEST_CASE("what agents said of themselves is marked in every table and is absent otherwise") {
    const auto silent = build_report(small_campaign());
    CHECK(!has(render_tables(silent), "self_reported"));
    ReportInput input = small_campaign();
    for (RunRecord& run : input.runs) {
      run.unseen_caps = run.method == "beta" ? "tokens (1000)" : "";
      if (run.name == "lib/alpha/r1") {
        run.self_reported = {usd_micros(50'000), 3, 700};
        run.metered_calls = 2;
      }
    }
    const CampaignReport report = build_report(std::move(input));
    const std::string text = render_text(report);
    CHECK(has(text, "self_reported (the agents' word alone): 0.05 USD in 3 calls and 700 tokens."));
    CHECK(has(text, "beta: unmetered: none of its 1 judged runs made a metered call"));
    std::size_t headers = 0;
    for (std::size_t at = text.find("  self_reported"); at != std::string::npos;
         at = text.find("  self_reported", at + 1))
      ++headers;
    CHECK(headers == 5);  // cost, tasks, where the money went, its sum, the words
    CHECK(has(text, with_words("", Words::kShown)));
    const Json json = parse_json(render_json(report)).value();
    CHECK(json["runs"][0]["self_reported"]["calls"] == 3);
    CHECK(json["runs"][0]["metered_calls"] == 2);
    CHECK(json["rows"][0]["self_reported"]["cost"]["micro_usd"] == 50'000);
    CHECK(json["rows"][0]["unmetered"] == false);
    CHECK(json["rows"][1]["unmetered"] == true);
    CHECK(has(render_progress_text(report), "beta: unmetered"));
    const auto runs = records(render_runs_csv(report));
    const auto costs = records(render_costs_csv(report));
    const auto tokens = std::ranges::find(runs[0], "self_reported_tokens") - runs[0].begin();
    CHECK(runs[1].at(static_cast<std::size_t>(tokens)) == "700");
    CHECK(costs[1].at(costs[0].size() - 16) == "0.050000");
    const auto rows = records(render_csv(report));
    CHECK(rows[2].at(rows[0].size() - 23) == "1");
  }

  TEST_CASE("what models were used for is told by method and stratum, where any was called") {
    CHECK(!has(render_tables(build_report(small_campaign())), "Calls of models"));
    ReportInput input = small_campaign();
    Usage use;
    use.model_calls = 4;
    use.input_tokens = 1'000;
    use.cached_input = 250;
    use.output_tokens = 80;
    use.reasoning_tokens = 20;
    use.ceiling_calls = 1;
    use.ceiling_micros = 1'500;
    use.refused_calls = 3;
    use.waited_ms = 12'300;
    use.clamped_calls = 2;
    use.overruns = 1;
    use.failed_calls = 5;
    use.busy_calls = 7;
    for (RunRecord& run : input.runs)
      if (run.name == "lib/alpha/r1") run.model_use = model_use_of(use) + model_use_of(use);
    const CampaignReport report = build_report(std::move(input));
    const std::string text = render_tables(report);
    CHECK(has(text, "Calls of models"));
    CHECK(
        has(text, "8   2000  25.0 %     160     25.0 %        6      25.0 %        24.6        4"));
    const Json json = parse_json(render_json(report)).value();
    CHECK(json["rows"][0]["model_use"]["cached_input_tokens"] == 500);
    CHECK(json["costs"][0]["model_use"]["at_ceiling"]["micro_usd"] == 3'000);
    CHECK(json["runs"][0]["model_use"]["waited_ms"] == 24'600);
    for (const std::string& csv :
         {render_csv(report), render_costs_csv(report), render_runs_csv(report)}) {
      const auto rows = records(csv);
      const auto at = [&](const std::string& column) {
        return rows[1].at(
            static_cast<std::size_t>(std::ranges::find(rows[0], column) - rows[0].begin()));
      };
      CHECK(at("failed_calls") == "10");
      CHECK(at("busy_calls") == "14");
      CHECK(at("overrun_calls") == "2");
      CHECK(at("model_calls") == "8");
      CHECK(at("ceiling_usd") == "0.003000");
      CHECK(at("refused_calls") == "6");
    }
  }

  TEST_CASE("the picture has a bar and a whisker for each rate and escapes names") {
    ReportInput input = small_campaign();
    for (RunRecord& run : input.runs)
      if (run.method == "beta") run.method = "<b>&\"";
    const std::string svg = render_svg(build_report(std::move(input)));
    CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(has(svg, "&lt;b&gt;&amp;&quot;"));
    CHECK(!has(svg, "<b>"));
    CHECK(has(svg, "60.0 % [23.1, 88.2]  3/5"));
    CHECK(has(svg, "no scorable run"));
    const auto count = [&](const std::string& part) {
      std::size_t n = 0;
      for (std::size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1))
        ++n;
      return n;
    };
    CHECK(count("class=\"bar\"") == 5);  // six rows, one without a scorable run
    CHECK(count("class=\"whisker\"") == 15);
  }
}
