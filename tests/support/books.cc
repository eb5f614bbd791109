#include "tests/support/books.h"

#include <algorithm>
#include <map>

#include "common/base/digest.h"

namespace proctor::testing {
namespace {

void check_journal(const CampaignScene& scene, const Expected& expected) {
  CHECK(scene.ended() == expected.runs - expected.parked);
  CHECK(scene.number("SELECT count(*) FROM runs WHERE state = 'parked'") == expected.parked);
  // One attempt decides a run, whatever else happened to it.
  CHECK(
      scene.sql("SELECT run FROM attempts WHERE sets_outcome = 1 GROUP BY run HAVING count(*) > 1")
          .empty());
  CHECK(scene
            .sql("SELECT r.run FROM runs r JOIN attempts a ON a.run = r.run AND a.attempt = "
                 "r.attempt WHERE r.state = 'ended' AND a.outcome IS NOT r.outcome")
            .empty());
  // What was granted is settled or voided, and nothing is charged above what was asked.
  CHECK(scene
            .sql("SELECT run, attempt, state FROM attempts WHERE settled_ms IS NULL AND state NOT "
                 "IN ('denied', 'voided')")
            .dump() == "[]");
  CHECK(scene.sql("SELECT run FROM attempts WHERE ask < charged").empty());
  const Json balance = scene.sql("SELECT * FROM balance");
  REQUIRE(balance.size() == 1);
  CHECK(balance[0]["reserved"] == 0);
  CHECK(balance[0]["spent"] <= balance[0]["cap"]);
  if (expected.attempts == Expected::Attempts::kOneEach)
    // A check that was not judged because strangers held what it needed is tried again, rightly.
    CHECK_MESSAGE(scene.sql("SELECT run FROM attempts WHERE granted_ms IS NOT NULL AND state <> "
                            "'voided' AND coalesce(rationale, '') NOT LIKE '%while this host had "
                            "no more of%' GROUP BY run HAVING count(*) > 1")
                          .dump() == "[]",
                  scene
                      .sql("SELECT run, attempt, state, infrastructure, termination, rationale, "
                           "reason FROM attempts")
                      .dump());
}

// Every digit of the report comes from the journal's rows and from the run directories.
void check_report(const CampaignScene& scene, const Expected& expected) {
  const CommandOutcome printed = scene.run("report", {"--json"});
  REQUIRE_MESSAGE(printed.exit_code == 0, printed.err);
  const Json report = must(parse_json(printed.out, {.bytes_max = std::size_t{64} << 20}));
  std::map<std::string, std::int64_t> of_rows;
  for (const Json& row : report["rows"]) {
    if (!row["stratum"].is_null()) continue;
    for (const char* key :
         {"planned", "success", "failure", "acceptance_error", "invalid", "parked"})
      of_rows[key] += row[key].get<std::int64_t>();
  }
  CHECK(of_rows["planned"] == expected.runs);
  CHECK(of_rows["parked"] == expected.parked);
  for (const char* outcome : {"success", "failure", "acceptance_error", "invalid"}) {
    CAPTURE(outcome);
    CHECK(of_rows[outcome] ==
          scene.number("SELECT count(*) FROM runs WHERE outcome = '" + std::string(outcome) + "'"));
  }
  CHECK(report["total_cost"]["total"]["micro_usd"] ==
        scene.number("SELECT coalesce(sum(charged + overrun), 0) FROM attempts"));
  REQUIRE(report["runs"].size() == static_cast<std::size_t>(expected.runs));
}

void check_run_directories(const CampaignScene& scene) {
  const Json rows = scene.sql(
      "SELECT run, attempt, outcome, lower(hex(report)) AS report, charged + overrun AS cost FROM "
      "attempts WHERE sets_outcome = 1 AND archive_bytes > 0");
  const Json report =
      must(parse_json(scene.run("report", {"--json"}).out, {.bytes_max = std::size_t{64} << 20}));
  for (const Json& row : rows) {
    const std::string name = report["runs"][row["run"].get<std::size_t>()]["run"].string();
    CAPTURE(name);
    const std::string bytes =
        scene.read(scene.folder() / "runs" / name /
                   ("attempt-" + std::to_string(row["attempt"].get<int>())) / "report.json");
    CHECK(sha256(bytes).hex() == row["report"].get<std::string>());
    const Json own = must(parse_json(bytes));
    CHECK(own["outcome"] == row["outcome"]);
    CHECK(own["cost"]["total_micros"] == row["cost"]);
    CHECK(own["identity"]["run_name"] == name);
  }
}

}  // namespace

void check_books(const CampaignScene& scene, const Expected& expected) {
  check_journal(scene, expected);
  check_report(scene, expected);
  check_run_directories(scene);
  const CommandOutcome verified = scene.run("verify");
  CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
  CHECK_MESSAGE(contains(verified.out, ": 0 problems"), verified.out);
}

CampaignShape judged_shape() {
  CampaignShape shape;
  shape.methods = {"noop", "reference", solving_method("solver"),
                   "{name: breaker, kind: command, command: exit 3}"};
  shape.replicates = 1;
  return shape;
}

void run_judged(const CampaignScene& scene) {
  const CommandOutcome ran = scene.run("run", {}, std::chrono::seconds(110));
  REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
  CHECK(contains(ran.out, "4 runs planned, 4 ended, 0 parked, 0 open"));
  check_books(scene, {.runs = 4});
  const Json report = must(parse_json(scene.run("report", {"--json"}).out));
  for (const Json& run : report["runs"]) {
    CAPTURE(run["run"]);
    const bool solves = run["method"] == "reference" || run["method"] == "solver";
    CHECK(run["outcome"] == (solves ? "success" : "failure"));
  }
  CHECK(scene.run("verify").exit_code == 0);
}

}  // namespace proctor::testing
