// The published schemas against what is really written.
#include <doctest/doctest.h>

#include <sstream>

#include "sample_run.h"
#include "tests/support/json_schema.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// The schema must refuse each document that lost or gained one field of an object.
void check_closed(const JsonSchema& schema, const Json& whole, const std::string& path,
                  const std::vector<std::string>& free_form) {
  const Json& here = at_pointer(whole, path);
  for (const std::string& name : free_form) {
    if (path.ends_with("/" + name)) return;
  }
  if (here.is_object()) {
    Json more = whole;
    at_pointer(more, path)["surprise"] = 1;
    CAPTURE(path);
    CHECK_FALSE(schema.accepts(more));
  }
  for (const auto& item : here.items()) {
    const std::string inner = path + "/" + item.first;
    if (here.is_object()) {
      Json less = whole;
      at_pointer(less, path).erase(item.first);
      CAPTURE(inner);
      CHECK_FALSE(schema.accepts(less));
    }
    if (here.is_object() && item.second.is_structured())
      check_closed(schema, whole, inner, free_form);
  }
}

}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("the manifest schema takes what is written and nothing less or more") {
    const JsonSchema schema("manifest");
    CHECK(schema.accepts(sample_manifest()));
    Json with_cache = sample_manifest();
    with_cache["environment"]["setup_cache"] = {{"use", "hit"}, {"key", "k"}, {"layer", "l"}};
    with_cache["environment"]["image_inputs"] = std::string(64, 'a');
    with_cache["tool"]["commit"] = "0123456789ab";
    CHECK(schema.accepts(with_cache));
    with_cache["environment"]["setup_cache"].erase("layer");
    CHECK_FALSE(schema.accepts(with_cache));
    check_closed(schema, sample_manifest(), "",
                 {"enforcement", "variables", "package_managers", "limits"});
  }

  TEST_CASE("the report schema takes what is written and nothing less or more") {
    const JsonSchema schema("report");
    const TempDir t = TempDir::create("schema").value();
    write_sample_run(t.path() / "run");
    const Json report = *parse_json(*read_file(t.path() / "run/report.json", 1 << 20));
    CHECK(schema.accepts(report));
    check_closed(schema, report, "", {});
    Json stopped = report;
    stopped["interventions"] =
        Json::Array{Json({{"seq", 12}, {"action", "stop"}, {"cause", "repeated_call"}})};
    CHECK(schema.accepts(stopped));
    stopped["interventions"][0].erase("cause");
    CHECK_FALSE(schema.accepts(stopped));
    for (const char* field : {"/outcome", "/status", "/cost/total_micros", "/checks/0/outcome",
                              "/evidence/head", "/checks/1/results"}) {
      Json wrong = report;
      at_pointer(wrong, field) = "wrong";
      CAPTURE(field);
      CHECK_FALSE(schema.accepts(wrong));
    }
  }

  TEST_CASE("the event schema takes every written line and nothing less or more") {
    const JsonSchema schema("event");
    const TempDir t = TempDir::create("schema").value();
    write_sample_run(t.path() / "run");
    std::istringstream log(*read_file(t.path() / "run/events.jsonl", 1 << 20));
    std::size_t lines = 0;
    for (std::string line; std::getline(log, line); ++lines) {
      const Json event = *parse_json(line);
      CHECK(schema.accepts(event));
      check_closed(schema, event, "", {"payload"});
    }
    CHECK(lines == 5);
  }
}
