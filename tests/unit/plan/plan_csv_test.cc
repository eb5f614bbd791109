#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/plan/plan_shapes.h"

using namespace proctor;
using proctor::testing::small_shape;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Swaps fields of one record (from 0) of a file without quotes.
std::string with_field(const std::string& csv, int record, int field, const std::string& value) {
  std::size_t at = 0;
  for (int i = 0; i <= record; ++i) at = csv.find('\n', at) + 1;
  for (int i = 0; i < field; ++i) at = csv.find(',', at) + 1;
  const std::size_t end = csv.find_first_of(",\n", at);
  return csv.substr(0, at) + value + csv.substr(end);
}

std::string error_of(const std::string& csv) {
  const auto plan = parse_plan("plan.csv", csv, small_shape());
  return plan.ok() ? "" : plan.error().detail;
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("the file begins with its columns and one line per run") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    CHECK(csv.starts_with(
        "order,run_id,task,contract_digest,method,replicate,stage,language,type,seed,envelope\n"));
    CHECK(std::ranges::count(csv, '\n') == 37);
    const std::string name = plan->run_name(RunId(0));
    CHECK(csv.find("\n0," + name + ",") != std::string::npos);
  }

  TEST_CASE("a plan read back is the plan that was written") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    const auto back = parse_plan("plan.csv", csv, small_shape());
    REQUIRE(back.ok());
    CHECK(*back == *plan);
    CHECK(to_csv(*back) == csv);
  }

  TEST_CASE("what a spreadsheet does to the file changes nothing") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    std::string csv = "\xEF\xBB\xBF";
    for (const char c : to_csv(*plan)) csv += c == '\n' ? std::string("\r\n") : std::string(1, c);
    csv = replaced(csv, "pilot", "\"pilot\"");
    csv += "\r\n\r\n";
    const auto back = parse_plan("plan.csv", csv, small_shape());
    REQUIRE(back.ok());
    CHECK(*back == *plan);
  }

  TEST_CASE("stratum values with commas, quotes and other scripts survive the file") {
    PlanShape shape = small_shape();
    shape.tasks[0].strata = {"C, \"old\"", "\xC3\xA9t\xC3\xA9"};
    const auto plan = draw_plan(shape);
    REQUIRE(plan.ok());
    const auto back = parse_plan("plan.csv", to_csv(*plan), shape);
    REQUIRE(back.ok());
    CHECK(*back == *plan);
  }

  TEST_CASE("a wrong field is refused with file and line and what was found and expected") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    const std::string& first_task = plan->task(RunId(0)).id;
    struct Row {
      const char* what;
      int field;
      std::string value;
      std::string expected;
    };
    const Row rows[] = {
        {"order", 0, "1", "plan.csv:2: order: found \"1\", expected 0"},
        {"order not a number", 0, "x", "plan.csv:2: order: found \"x\", expected a whole number"},
        {"padded", 0, "00", "plan.csv:2: order: found \"00\", expected a whole number"},
        {"run_id", 1, "a/b/r1", "plan.csv:2: run_id: found \"a/b/r1\", expected \"" + first_task},
        {"unknown task", 2, first_task + "x", "(\"" + first_task + "\"?)"},
        {"digest", 3, Digest().hex(), "plan.csv:2: contract_digest: found \"000"},
        {"method", 4, "nop",
         "plan.csv:2: method: found \"nop\", expected a method of the campaign (\"noop\"?)"},
        {"replicate 0", 5, "0", "plan.csv:2: replicate: found \"0\", expected 1 to 3"},
        {"replicate 4", 5, "4", "plan.csv:2: replicate: found \"4\", expected 1 to 3"},
        {"stage", 6, "main", "plan.csv:2: stage: found \"main\", expected \"pilot\""},
        {"stratum", 7, "perl", "plan.csv:2: language: found \"perl\", expected"},
        {"seed", 9, "4294967296",
         "plan.csv:2: seed: found \"4294967296\", expected a whole number"},
        {"negative seed", 9, "-1", "plan.csv:2: seed: found \"-1\""},
        {"envelope", 10, "stage:main",
         "plan.csv:2: envelope: found \"stage:main\", expected \"stage:pilot/task:"},
        {"too many fields", 10, "a,b", "plan.csv:2: record: found \"12 fields\", expected 11"},
        {"unclosed quote", 10, "\"a", "plan.csv: line 2: a quoted field is not closed"},
        {"NUL", 10, std::string(1, '\0'), "plan.csv: line 2: NUL byte"},
    };
    for (const Row& row : rows) {
      CAPTURE(std::string(row.what));
      const std::string error = error_of(with_field(csv, 0, row.field, row.value));
      CAPTURE(error);
      CHECK(error.find(row.expected) != std::string::npos);
    }
  }

  TEST_CASE("a run that is there twice or not at all is named") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1)
      lines.push_back(csv.substr(at, csv.find('\n', at) + 1 - at));
    std::string cut;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) cut += lines[i];
    CHECK(error_of(cut) ==
          "plan.csv: found 35 runs, expected 36: " + plan->run_name(RunId(35)) + " is missing");
    std::string twice = lines[0] + lines[1] + "1" + lines[1].substr(1);
    CHECK(error_of(twice) == "plan.csv:3: run_id: found \"" + plan->run_name(RunId(0)) +
                                 "\", expected each run once; order 0 has it");
  }

  TEST_CASE("a file cut anywhere is refused and never taken for a smaller plan") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    for (std::size_t n = 0; n + 1 < csv.size();
         ++n)  // the ends byte by byte, the middle by samples
      if (n < 300 || csv.size() < n + 200 || n % 11 == 0)
        CHECK(!error_of(csv.substr(0, n)).empty());
    CHECK(error_of(csv.substr(0, csv.size() - 1)).empty());  // the last line feed says nothing
  }

  TEST_CASE("the header must be this campaign's") {
    const std::string csv = to_csv(*draw_plan(small_shape()));
    CHECK(error_of("") == "plan.csv: found no header, expected 11 columns from \"order\"");
    CHECK(error_of(replaced(csv, "language", "lang")) ==
          "plan.csv:1: column 8: found \"lang\", expected \"language\"");
    CHECK(error_of(replaced(csv, ",envelope", "")) ==
          "plan.csv:1: column 11: found \"nothing\", expected \"envelope\"");
    CHECK(error_of(replaced(csv, ",envelope", ",envelope,more")) ==
          "plan.csv:1: column 12: found \"more\", expected no more columns");
  }

  TEST_CASE("another order of the same runs is a plan too and keeps its order") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    PlanShape other = small_shape();
    other.seed = 1337;
    const auto moved = parse_plan("plan.csv", to_csv(*draw_plan(other)), small_shape());
    REQUIRE(moved.ok());
    CHECK(moved->size() == plan->size());
    CHECK(!(*moved == *plan));
    CHECK(std::ranges::equal(moved->rows(), draw_plan(other)->rows()));
  }

  TEST_CASE("a changed byte is refused or is another seed and nothing else") {
    const auto plan = draw_plan(small_shape());
    REQUIRE(plan.ok());
    const std::string csv = to_csv(*plan);
    constexpr std::size_t kBytes = 430;
    REQUIRE(kBytes < csv.size());
    std::size_t refused = 0, other_seeds = 0;
    for (std::size_t i = 0; i < kBytes; ++i) {  // the header and two records
      for (const char c : {'7', ',', '"', '\n', '\0', 'x'}) {
        if (csv[i] == c) continue;
        std::string changed = csv;
        changed[i] = c;
        const auto back = parse_plan("plan.csv", changed, small_shape());
        if (!back.ok()) {
          ++refused;
          continue;
        }
        int differing = 0;
        for (std::size_t r = 0; r < back->rows().size(); ++r) {
          PlanRow row = back->rows()[r];
          differing += row.seed == plan->rows()[r].seed ? 0 : 1;
          row.seed = plan->rows()[r].seed;
          CHECK(row == plan->rows()[r]);
        }
        other_seeds += differing == 1 ? 1 : 0;
        CHECK(differing <= 1);
      }
    }
    CHECK(kBytes * 5 < refused);
    CHECK(0 < other_seeds);
  }
}
