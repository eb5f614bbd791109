// One table of columns, and all that is made of it: schema, docs, filter and CSV have its names.
#include "coordinator/aggregate/columns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/csv.h"
#include "common/base/files.h"
#include "coordinator/aggregate/run_filter.h"
#include "tests/support/json_schema.h"
#include "tests/support/paths.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::aggregate;
using namespace proctor::testing;

namespace {

const std::vector<std::string> kKeys{"language"};

// The members of an object by their paths, in as much detail as the table has them.
void add_names(std::set<std::string>& out, const Json& schema, Json at, const std::string& path,
               const std::set<std::string>& objects) {
  if (at.contains("anyOf")) at = at["anyOf"][0];
  if (at.contains("$ref"))
    at = schema["definitions"]
               [at["$ref"].get<std::string>().substr(std::string("#/definitions/").size())];
  if (!objects.contains(path)) {
    out.insert(path);
    return;
  }
  for (const auto& [name, member] : at["properties"].items())
    add_names(out, schema, member, path.empty() ? name : path + "." + name, objects);
}

template <class R>
std::string difference_to_schema(const Columns<R>& columns, Json rows, std::set<std::string> more) {
  static const JsonSchema kSchema("campaign_report");
  std::set<std::string> of_table = std::move(more), of_schema, objects{""};
  for (const auto& c : columns.all()) {
    if (c.json.empty()) continue;
    of_table.insert(c.json.substr(0, c.json.find('?')));
    for (std::size_t at = c.json.find('.'); at != std::string::npos; at = c.json.find('.', at + 1))
      objects.insert(c.json.substr(0, at));
  }
  add_names(of_schema, kSchema.document(), std::move(rows), "", objects);
  std::vector<std::string> apart;
  std::ranges::set_symmetric_difference(of_table, of_schema, std::back_inserter(apart));
  std::string out;
  for (const std::string& name : apart) out += name + "\n";
  return out;
}

std::size_t fields_of(const std::string& csv) {
  CsvReader reader(csv);
  std::vector<std::string_view> fields;
  REQUIRE(reader.next(fields).ok());
  return fields.size();
}

// Each name once, and as many cells as names, of a record that has nothing too.
template <class R>
void check_csv(const Columns<R>& columns, const R& record) {
  const std::string header = columns.csv_header();
  CsvReader reader(header);
  std::vector<std::string_view> names;
  REQUIRE(reader.next(names).ok());
  CHECK(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
  std::string line;
  columns.append_csv(line, record);
  CHECK(fields_of(line) == names.size());
}

std::string_view words_of(Type type) {
  constexpr std::string_view kWords[] = {
      "text",     "name",   "yes or no", "count",   "money", "ms", "of 1", "rate with interval",
      "interval", "object", "points",    "p value", "list"};
  return kWords[static_cast<std::size_t>(type)];
}

// The table of docs/file-formats.md: a line for each column, of all tables that have it.
class Docs {
 public:
  template <class R>
  void add(const std::string& table, const Columns<R>& columns) {
    for (const auto& c : columns.all()) {
      CHECK_MESSAGE(!c.meaning.empty(), (c.json + c.csv + c.word));
      const std::string names = "| " + c.word + " | " + coded(c.json.substr(0, c.json.find('?'))) +
                                " | " + coded(c.csv) + " | ";
      const std::string meaning =
          " | " + std::string(words_of(c.type)) + " | " + std::string(c.meaning) + " |\n";
      auto [at, added] = of_.try_emplace(names + meaning, order_.size());
      if (added)
        order_.push_back({names, table, meaning});
      else
        order_[at->second].tables += ", " + table;
    }
  }
  std::string text() const {
    std::string out;
    for (const Line& line : order_) out += line.names + line.tables + line.meaning;
    return out;
  }

 private:
  static std::string coded(const std::string& names) {
    return names.empty() ? "" : "`" + names + "`";
  }
  struct Line {
    std::string names, tables, meaning;
  };
  std::map<std::string, std::size_t> of_;
  std::vector<Line> order_;
};

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("the schema of a report has the names of its columns") {
    const JsonSchema schema("campaign_report");
    const Json& all = schema.document()["properties"];
    CHECK(difference_to_schema(row_columns(), all["rows"]["items"], {"sets"}) == "");
    CHECK(difference_to_schema(cost_columns(), all["costs"]["items"], {}) == "");
    CHECK(difference_to_schema(run_columns({}), all["runs"]["items"], {}) == "");
    const Json projection = all["projection"]["anyOf"][1]["properties"]["rows"]["items"];
    CHECK(difference_to_schema(comparison_columns(), projection, {}) == "");
    const Json& rubric = all["details"]["properties"]["rubric"]["properties"];
    CHECK(difference_to_schema(gate_columns(), rubric["gates"]["items"], {}) == "");
    CHECK(difference_to_schema(tag_columns(), rubric["failure_modes"]["items"], {}) == "");
  }

  TEST_CASE("a CSV file has a cell for each name, whatever a record has") {
    const CampaignReport report = build_report(small_campaign());
    check_csv(row_columns(), report.rows.front());
    check_csv(row_columns(), {});
    check_csv(cost_columns(), report.costs.front());
    check_csv(cost_columns(), {});
    check_csv(run_columns(kKeys), report.runs.front());
    check_csv(run_columns({}), {});
    check_csv(comparison_columns(), {});
    check_csv(board_columns(), {});
    check_csv(contrast_columns(), {});
    check_csv(sensitivity_columns(), {});
    check_csv(transition_columns(), {});
  }

  TEST_CASE("a filter has every word of a run, and each is read") {
    const CampaignReport report = build_report(small_campaign());
    std::set<std::string> words;
    for (const Definition& d : filter_words()) {
      CAPTURE(d.word);
      CHECK(words.insert(d.word).second);
      CHECK(RunFilter::parse(d.word + "=*", {kKeys, report.runs}).ok() !=
            RunFilter::parse(d.word + ">=0", {kKeys, report.runs}).ok());
    }
    for (const auto& c : run_columns({}).all())
      if (!c.word.empty()) CHECK_MESSAGE(words.erase(c.word) == 1, c.word);
    CHECK(words.empty());
  }

  TEST_CASE("the table of docs/file-formats.md is that of the columns") {
    Docs docs;
    docs.add("rows", row_columns());
    docs.add("costs", cost_columns());
    docs.add("runs", run_columns({}));
    docs.add("projection", comparison_columns());
    docs.add("gates", gate_columns());
    docs.add("failure_modes", tag_columns());
    const fs::path page = source_dir() / "docs/file-formats.md";
    const std::string text = read_file(page, 1'000'000).value();
    const std::string head =
        "| word | JSON | CSV | of | unit | meaning |\n|---|---|---|---|---|---|\n";
    const std::size_t at = text.find(head);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = at + head.size(), end = text.find("\n\n", begin);
    const std::string wanted = docs.text(), is = text.substr(begin, end + 1 - begin);
    CHECK_MESSAGE(is == wanted, "docs/file-formats.md wants these lines:\n" << wanted);
  }
}
