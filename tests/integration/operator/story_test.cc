// proctor story and proctor journal export, on campaigns that really ran.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "tests/support/campaign_scene.h"
#include "tests/support/json_schema.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(must(parse_json(line)));
  return out;
}

}  // namespace

TEST_SUITE("story") {
  TEST_CASE("a run's story and the campaign's are told in order and exported whole") {
    CampaignShape shape;
    shape.replicates = 1;
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    CHECK(scene.run("story").exit_code == 2);  // not registered
    const CommandOutcome run = scene.run("run");
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);

    const CommandOutcome one = scene.run("story", {"add/reference/r1"});
    REQUIRE_MESSAGE(one.exit_code == 0, one.err);
    const std::size_t granted =
        one.out.find("attempt 1  granted: 0.500000 units reserved, for worker");
    const std::size_t result = one.out.find("attempt 1  result: success, completed");
    const std::size_t settled = one.out.find("attempt 1  settled: charged ");
    CHECK_MESSAGE(granted < result, one.out);
    CHECK(result < settled);
    CHECK(settled != std::string::npos);
    CHECK_FALSE(contains(one.out, "noop"));

    const CommandOutcome all = scene.run("story", {"--json"});
    REQUIRE(all.exit_code == 0);
    const std::vector<Json> facts = lines_of(all.out);
    std::int64_t before = 0;
    std::set<std::string> kinds, runs;
    for (const Json& fact : facts) {
      CHECK(before <= fact["at_ms"].get<std::int64_t>());
      before = fact["at_ms"].get<std::int64_t>();
      kinds.insert(fact["fact"].get<std::string>());
      if (fact.contains("run")) runs.insert(fact["run"].get<std::string>());
    }
    for (const char* kind : {"epoch", "intent", "granted", "result", "settled"})
      CHECK_MESSAGE(kinds.contains(kind), kind);
    CHECK(runs == std::set<std::string>{"add/noop/r1", "add/reference/r1"});
    CHECK(facts.front()["fact"] == "epoch");

    CHECK(contains(scene.run("story", {"--since", "0s"}).out, "nothing has happened since then"));
    CHECK(lines_of(scene.run("story", {"--json", "--since", "1d"}).out).size() == facts.size());
    CHECK(scene.run("story", {"--since", "yesterday"}).exit_code == 2);
    CHECK(scene.run("story", {"add/reference/r9"}).exit_code == 2);

    const CommandOutcome exported =
        proctor::testing::proctor({"journal", "export", scene.folder().string()});
    REQUIRE_MESSAGE(exported.exit_code == 0, exported.err);
    const JsonSchema schema("journal_export");
    std::map<std::string, std::int64_t> rows;
    for (const Json& line : lines_of(exported.out)) {
      CHECK_MESSAGE(schema.accepts(line), line.dump() << ": " << schema.violations(line));
      ++rows[line["table"].get<std::string>()];
      if (line["table"] == "attempts") {
        CHECK(line["report"].get<std::string>().size() == 64);
        CHECK(contains(line["run_name"].get<std::string>(), "add/"));
      }
    }
    for (const char* table : {"meta", "scopes", "epochs", "workers", "attempts", "runs", "notes"}) {
      CAPTURE(table);
      CHECK(rows[table] == scene.number("SELECT count(*) FROM " + std::string(table)));
    }
    // A new table must be exported too, unless it only seals the others.
    CHECK(scene.number("SELECT count(*) FROM sqlite_schema WHERE type = 'table'") == 10);
    CHECK(proctor::testing::proctor({"journal"}).exit_code == 2);
    CHECK(proctor::testing::proctor({"journal", "export", "/nowhere"}).exit_code == 2);
    scene.require_nothing_left();
  }
}
