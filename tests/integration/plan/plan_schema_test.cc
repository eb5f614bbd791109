// schemas/pilot_randomization_plan.schema.json describes what we write, checked by a validator that
// is not ours.
#include <doctest/doctest.h>

#include <random>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "common/base/csv.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/plan/plan.h"

using namespace proctor;

namespace {

// As a reader of CSV with a header gives it: one object of texts per record.
Json rows_of(std::string_view csv) {
  CsvReader reader(csv);
  std::vector<std::string_view> fields;
  std::vector<std::string> header;
  Json out = Json::array();
  while (reader.next(fields).value()) {
    if (header.empty()) {
      header.assign(fields.begin(), fields.end());
      continue;
    }
    Json row = Json::object();
    for (std::size_t i = 0; i < fields.size(); ++i) row[header.at(i)] = fields[i];
    out.push_back(std::move(row));
  }
  return out;
}

PlanShape shape() {
  PlanShape s;
  s.strata_keys = {"language"};
  s.tasks = {{"json-lib", sha256("a"), {"go"}}, {"cli", sha256("b"), {"rust"}}};
  s.methods = {"noop", "my-agent"};
  s.stages = {{"pilot", 1}, {"main", 2}};
  return s;
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a plan satisfies its schema and an altered one does not") {
    const auto text = read_file(PROCTOR_SOURCE_DIR "/schemas/pilot_randomization_plan.schema.json",
                                std::size_t{1} << 20);
    REQUIRE(text.ok());
    const auto json = parse_json(*text);
    REQUIRE(json.ok());
    valijson::Schema schema;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(*json), schema);
    const auto valid = [&](const Json& rows) {
      valijson::Validator validator;
      return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(rows), nullptr);
    };
    const Json rows = rows_of(to_csv(draw_plan(shape()).value()));
    REQUIRE(rows.size() == 12);
    CHECK(valid(rows));
    for (const auto& cell : rows[0].items()) {
      CAPTURE(cell.key());
      Json wrong = rows;
      wrong[0][cell.key()] = "not, this";
      CHECK(valid(wrong) ==
            (cell.key() == "language" || cell.key() == "method" || cell.key() == "stage"));
      wrong[0].erase(cell.key());
      CHECK(valid(wrong) == (cell.key() == "language"));
    }
  }
}
