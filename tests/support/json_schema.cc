#include "tests/support/json_schema.h"

#include <doctest/doctest.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "common/base/csv.h"
#include "common/base/files.h"

namespace proctor::testing {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

namespace {
nlohmann::json as_nlohmann(const Json& value) {
  return nlohmann::json::parse(value.dump());
}
}  // namespace

struct JsonSchema::Compiled {
  Json document;
  valijson::Schema schema;
};

JsonSchema::JsonSchema(const std::string& name) : compiled_(std::make_unique<Compiled>()) {
  const auto text =
      read_file(fs::path(PROCTOR_SCHEMAS) / (name + ".schema.json"), std::size_t{1} << 20);
  REQUIRE(text.ok());
  auto json = parse_json(*text);
  REQUIRE_MESSAGE(json.ok(), (json.ok() ? "" : json.error().detail));
  compiled_->document = std::move(json).value();
  valijson::SchemaParser parser;
  const nlohmann::json document = as_nlohmann(compiled_->document);
  parser.populateSchema(Adapter(document), compiled_->schema);
}

JsonSchema::~JsonSchema() = default;

const Json& JsonSchema::document() const {
  return compiled_->document;
}

bool JsonSchema::accepts(const Json& value) const {
  valijson::Validator validator;
  const nlohmann::json there = as_nlohmann(value);
  return validator.validate(compiled_->schema, Adapter(there), nullptr);
}

std::string JsonSchema::violations(const Json& value) const {
  valijson::Validator validator;
  valijson::ValidationResults results;
  const nlohmann::json there = as_nlohmann(value);
  if (validator.validate(compiled_->schema, Adapter(there), &results)) return "";
  std::string said;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const std::string& part : error.context) said += part;
    said += ": " + error.description + "\n";
  }
  return said.empty() ? "not accepted\n" : said;
}

Json csv_rows(std::string_view csv) {
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

}  // namespace proctor::testing
