#include "coordinator/cvdp/report/report.h"

#include <doctest/doctest.h>

#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/report/composite.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
ReportMetadata metadata_of(const Value& report) {
  const Value& m = in(report, "metadata");
  ReportMetadata out;
  out.dataset_path = text_in(m, "dataset_path");
  out.timestamp = text_in(m, "timestamp");
  out.golden_mode = *in(m, "golden_mode").boolean();
  out.model_agent = in(m, "model_agent");
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Value report_of(std::string_view raw) {
  ReportMetadata m;
  m.dataset_path = "d.jsonl";
  const auto r = make_report(json_of(raw), m);
  REQUIRE(r.ok());
  return r->json;
}
constexpr const char* kRaw =
    R"({"p_1":{"category":"cid003","difficulty":"easy","tests":[{"result":0,"log":"l","error_msg":null},)"
    R"({"result":137,"log":null,"error_msg":"one\ntwo"}],"errors":137},)"
    R"("p_2":{"category":"cid006","difficulty":"hard","tests":[{"result":false,"bleu_score":0.5},)"
    R"({"result":true,"bleu_score":1}],"errors":true}})";
// Two samples: p_1 passes in the first, p_2 in both.
Value samples_of() {
  const auto sample = [](const char* first) {
    return report_of(
        R"({"p_1":{"category":"cid003","difficulty":"easy","tests":[{"result":)" +
        std::string(first) +
        R"(,"log":"l"}]},"p_2":{"category":"cid003","difficulty":"hard","tests":[{"result":0}]}})");
  };
  const auto c = make_composite({sample("0"), sample("2")}, {"2026-01-01 00:00:00", 1, {"a", "b"}});
  REQUIRE(c.ok());
  return *c;
}
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("a grid aligns numbers at the point and text to the left") {
    CHECK(render_grid({{"Cat", "N"}, {{"  a ", "1.5"}, {"bb", "10"}}}) ==
          "+-------+------+\n"
          "| Cat   |    N |\n"
          "+=======+======+\n"
          "| a     |  1.5 |\n"
          "+-------+------+\n"
          "| bb    | 10   |\n"
          "+-------+------+");
    CHECK(render_grid({{}, {{"x\ny", "\xE2\x86\xB3"}}}) ==
          "+---+---+\n| x | \xE2\x86\xB3 |\n| y |   |\n+---+---+");
    CHECK(render_grid({{"N"}, {}}) == "+-----+\n| N   |\n+=====+");
    CHECK(render_grid({{}, {{"1e3"}, {"0.25"}}}) ==
          "+---------+\n| 1000    |\n+---------+\n|    0.25 |\n+---------+");
  }

  TEST_CASE("a result of nought or false passes and scores count in part") {
    const Value r = report_of(kRaw);
    CHECK(
        write_json(in(in(r, "cid003"), "easy")) ==
        R"j({"Passed Tests": 1, "Failed Tests": 1, "Total Tests": 2, "Passed Tests (%)": 50.0, )j"
        R"j("Passed Problems": 0, "Failed Problems": 1, "Total Problems": 1, "Passed Problems (%)": 0.0})j");
    CHECK(
        write_json(in(in(r, "cid006"), "hard")) ==
        R"j({"Passed Tests": 1, "Failed Tests": 1, "Total Tests": 2, "Passed Tests (%)": 50.0, )j"
        R"j("Passed Problems": 0.75, "Failed Problems": 0.25, "Total Problems": 1, "Passed Problems (%)": 75.0})j");
    const auto text = render_report(r);
    REQUIRE(text.ok());
    CHECK(text->find("| two ") != std::string::npos);
    CHECK(text->find("No passing problems found.") != std::string::npos);
  }

  TEST_CASE("what cannot be reported is named and the rest is reported") {
    const auto r =
        make_report(json_of(R"({"a":1,"b":{"category":"cid003","difficulty":"simple","tests":[]},
          "c":{"category":"cid003","difficulty":"easy"},"d":{"category":"metadata","difficulty":"easy",
          "tests":[]},"e":{"category":"cid003","difficulty":"easy","tests":[null]}})"),
                    {});
    REQUIRE(r.ok());
    CHECK(r->left_out.size() == 4);
    CHECK(write_json(*in(in(r->json, "test_details"), "failing_tests").array()).find("\"e\"") !=
          std::string::npos);
    CHECK_FALSE(make_report(json_of("[]"), {}).ok());
    CHECK_FALSE(render_report(json_of("{}")).ok());
    CHECK_FALSE(render_composite(json_of("{}")).ok());
    CHECK(render_report(report_of("{}")).ok());
  }

  TEST_CASE("numbers are Python's") {
    CHECK(Count{5, false}.rounded() == "5");
    CHECK(Count{5, true}.rounded() == "5.0");
    CHECK(Count{0.09999999999999998, true}.rounded() == "0.1");
    CHECK(rounded_to(2.675, 2) == 2.67);
    CHECK(rounded_to(0.5, 0) == 0.0);
    CHECK(six_digits(3.3678794411714423) == "3.36788");
  }

  // Oracle: Chen et al. 2021, n = 5, c = 2, k = 2: 1 - C(3,2)/C(5,2) = 0.7.
  TEST_CASE("pass at k is unbiased beside upstream's plug-in value") {
    CHECK(plug_in_pass_at_k({5, 2}, 2) == doctest::Approx(0.64));
    const std::vector<Cluster> problems = {{5, 2}, {5, 5}, {5, 0}, {1, 1}};
    const PassEstimates e = estimate_pass(problems, 2);
    CHECK(e.problems == 4);
    CHECK(e.too_few == 1);
    CHECK(e.at_least_one->mean == doctest::Approx(1.7 / 3));
    CHECK(e.at_least_one->tasks == 3);
    CHECK(e.at_least_one->interval->low < 0.5);
  }

  TEST_CASE("samples are put together and estimated") {
    const Value c = samples_of();
    const auto text = render_composite(c, 2);
    REQUIRE(text.ok());
    CHECK(text->find("Overall Pass@2, n=2 probability: 87.50%") != std::string::npos);
    const auto table = pass_table(c, 2);
    REQUIRE(table.ok());
    const Value& all = (*in(table->json, "rows").array())[0];
    CHECK(write_json(in(in(all, "pass_at_k"), "estimate")) == "1.0");
    CHECK(write_json(in(in(all, "pass_at_k_plug_in"), "estimate")) == "0.875");
    CHECK(write_json(in(in(all, "pass_all_k"), "estimate")) == "0.5");
    CHECK_FALSE(render_composite(c, -1).ok());
    CHECK_FALSE(make_composite({}, {}).ok());
  }

  TEST_CASE("upstream's own reports of one run") {
    if (!have_shared_data("upstream's own reports of one run")) return;
    for (const char* run : {"golden", "synthetic"}) {
      CAPTURE(run);
      const fs::path dir = shared_data() / "reports" / run;
      const std::string expected = bytes_of(dir / "report.json");
      const Value published = json_of(expected);
      // The published log paths were shortened after the table was drawn.
      const std::string path = "RUN.........1";
      const auto report =
          make_report(json_of(replaced(bytes_of(dir / "raw_result.json"), "RUN/", path + "/")),
                      metadata_of(published));
      REQUIRE(report.ok());
      CHECK(replaced(write_json(report->json), path, "RUN") == expected);
      const auto text = render_report(report->json);
      REQUIRE(text.ok());
      CHECK(replaced(*text, path, "RUN") == bytes_of(dir / "report.txt"));
    }
  }

  TEST_CASE("upstream's own composite report") {
    if (!have_shared_data("upstream's own composite report")) return;
    const fs::path dir = shared_data() / "reports" / "samples";
    const std::string expected = bytes_of(dir / "composite_report.json");
    const Value published = json_of(expected);
    const auto text = render_composite(published);
    REQUIRE(text.ok());
    CHECK(*text == bytes_of(dir / "composite_report.txt"));
    std::vector<Value> reports;
    for (const Value& s : *in(published, "samples").array()) {
      reports.push_back(s);
      reports.back().object()->erase("sample_index");
    }
    const auto made =
        make_composite(reports, {text_in(in(published, "metadata"), "timestamp"),
                                 1,
                                 {"work_s/sample_1", "work_s/sample_2", "work_s/sample_3"}});
    REQUIRE(made.ok());
    CHECK(write_json(*made, 2) == expected);
  }
}
