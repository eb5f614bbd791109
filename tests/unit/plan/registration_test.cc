#include "common/plan/registration.h"
#include "common/contract/campaign.h"

#include <doctest/doctest.h>

#include "common/base/json.h"

using namespace proctor;

namespace {

Campaign campaign() {
  Campaign c;
  c.name = "pilot";
  c.replicates = 2;
  c.stages = {{"main", {}}};
  c.strata = {"language"};
  c.contracts.resize(2);
  c.contracts[0].id = "json-lib";
  c.contracts[0].digest = sha256("json-lib");
  c.contracts[1].id = "csv-tool";
  c.contracts[1].digest = sha256("csv-tool");
  c.methods.resize(1);
  c.methods[0].name = "noop";
  c.methods[0].digest = sha256("noop");
  c.envelopes.global = MicroUsd::from_micros(20'000'000);
  c.envelopes.stage["main"] = MicroUsd::from_micros(15'000'000);
  c.envelopes.tasks["json-lib"] = MicroUsd::from_micros(7'000'001);
  c.caps.tokens = 100'000;
  c.cost_model.digest = sha256("prices");
  c.cost_model.version = "file";
  return c;
}

Registration registered(const Campaign& c = campaign()) {
  auto r = make_registration(c, sha256("plan"), WallTime(1'772'841'600'000));
  REQUIRE(r.ok());
  return *r;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("a registration read back is the one that was written with its removals") {
    Registration r = registered();
    REQUIRE(
        add_removal(r, "csv-tool", "its repository disappeared", WallTime(1'772'841'700'000)).ok());
    REQUIRE(add_removal(r, "json-lib", "flaky", WallTime(2), "Ada").ok());
    const auto back = parse_registration(to_json(r));
    REQUIRE(back.ok());
    CHECK(*back == r);
    CHECK(is_removed(*back, "csv-tool"));
    CHECK(back->removals.back().by == "Ada");
  }

  TEST_CASE("the version of the rules of verdicts is frozen") {
    const Registration now = registered();
    CHECK(now.rubric == kRubricVersion);
    CHECK(parse_registration(to_json(now)).value().rubric == now.rubric);
    Registration older = now;
    older.rubric.reset();
    CHECK(to_json(older).find("rubric") == std::string::npos);
    CHECK_FALSE(parse_registration(to_json(older)).value().rubric);
    CHECK(differences(older, now).empty());
    // A registration that loses it would free workers of those rules.
    std::string without = to_json(now);
    const std::size_t line = without.find("\n    \"rubric\"");
    REQUIRE(line != std::string::npos);
    without.erase(line, without.find('\n', line + 1) - line);
    const auto freed = parse_registration(without);
    REQUIRE_FALSE(freed.ok());
    CHECK(freed.error().code == Errc::kCorrupt);
    for (const std::uint64_t other : {std::uint64_t{0}, kRubricVersion + 1}) {
      Registration later = now;
      later.rubric = other;
      CHECK_FALSE(parse_registration(to_json(later)).ok());
    }
  }

  TEST_CASE("the campaign is identified by its name and the digest of what is frozen") {
    Registration r = registered();
    const std::string id = campaign_id(r);
    CHECK(id == "pilot-" + frozen_digest(r).short_hex());
    // The digest is that of the canonical bytes, which an auditor can compute with any tool.
    const auto json = parse_json(to_json(r));
    REQUIRE(json.ok());
    CHECK(sha256(*canonical_json((*json)["frozen"])).hex() == (*json)["digest"].get<std::string>());
    REQUIRE(add_removal(r, "csv-tool", "flaky", WallTime(1)).ok());
    CHECK(campaign_id(r) == id);
    r.seed = 1337;
    CHECK(campaign_id(r) != id);
  }

  TEST_CASE("what opens a stage is frozen, and absent where nothing is asked") {
    CHECK_FALSE(parse_json(to_json(registered())).value()["frozen"].contains("stage_rules"));
    Campaign c = campaign();
    c.stages.push_back({"full", {}});
    c.stages[1].rules.entry = {{StagePredicate::kInvalidShare, "", 50'000}};
    c.stages[1].rules.people = 2;
    const Registration then = registered(c);
    const auto back = parse_registration(to_json(then));
    REQUIRE(back.ok());
    CHECK(*back == then);
    CHECK(then.stage_rules.at("full") == "entry invalid_share 0.05; exit none; approval of 2");
    CHECK_FALSE(then.stage_rules.contains("main"));
    c.stages[1].rules.people = 1;
    const std::vector<std::string> said = differences(then, registered(c));
    REQUIRE(said.size() == 1);
    CHECK(said[0].starts_with("rules of stage full: registered \"entry invalid_share 0.05"));
    c.stages[1].rules = {};
    CHECK(differences(then, registered(c)).size() == 1);
  }

  TEST_CASE("the campaign whose patches are judged is frozen, and absent where there is none") {
    CHECK_FALSE(parse_json(to_json(registered())).value()["frozen"].contains("derived_from"));
    Campaign c = campaign();
    c.derived_from = DerivedFrom{"pilot-0123456789ab", {{"json-lib", std::string(64, 'a')}}, {}};
    const Registration then = registered(c);
    CHECK(then.derived_from ==
          std::map<std::string, std::string>{{"campaign", "pilot-0123456789ab"},
                                             {"contract:json-lib", std::string(64, 'a')}});
    CHECK(parse_registration(to_json(then)).value() == then);
    c.derived_from->contracts["json-lib"] = std::string(64, 'b');
    CHECK(differences(then, registered(c)).size() == 1);
  }

  TEST_CASE("tasks and replicates of a stage's own are frozen, and absent where it has none") {
    Campaign c = campaign();
    c.stages = {Stage{"pilot", std::nullopt}, Stage{"main", std::nullopt}};
    const Registration before = registered(c);
    CHECK(to_json(before).find("stage_draws") == std::string::npos);
    c.stages[0].draw.per_stratum = 1;
    c.stages[1].draw.replicates = 3;
    const Registration now = registered(c);
    CHECK(parse_registration(to_json(now)).value() == now);
    CHECK(frozen_digest(now) != frozen_digest(before));
    CHECK(differences(before, now) ==
          std::vector<std::string>{
              "tasks of stage main: not registered, now every task, 3 replicates, by rounds",
              "tasks of stage pilot: not registered, now 1 of each stratum, the campaign's "
              "replicates, by rounds"});
    Registration listed = now;
    listed.stage_draws["pilot"] = {std::nullopt, {"json-lib"}, 2U, StageOrder::kTasks};
    CHECK(parse_registration(to_json(listed)).value() == listed);
    const Json json = parse_json(to_json(listed)).value().at("frozen").at("stage_draws");
    CHECK(json.at("pilot").dump() == R"({"order":"tasks","replicates":2,"tasks":["json-lib"]})");
    CHECK(json.at("main").at("tasks").is_null());
  }

  TEST_CASE("nothing differs when only the day and the tool do") {
    const Registration then = registered();
    Registration now = then;
    now.at = WallTime(5);
    now.tool_version = "9.9.9";
    CHECK(differences(then, now).empty());
  }

  TEST_CASE("each difference is said with what was registered and what is there now") {
    struct Row {
      const char* what;
      void (*change)(Campaign&);
      std::string expected;
    };
    const Row rows[] = {
        {"contract", [](Campaign& c) { c.contracts[0].digest = sha256("other"); },
         "contract json-lib: registered " + sha256("json-lib").short_hex() + ", now " +
             sha256("other").short_hex()},
        {"contract gone", [](Campaign& c) { c.contracts.pop_back(); },
         "contract csv-tool: registered " + sha256("csv-tool").short_hex() + ", now absent"},
        {"method new",
         [](Campaign& c) {
           c.methods.push_back(c.methods[0]);
           c.methods[1].name = "reference";
         },
         "method reference: not registered, now " + sha256("noop").short_hex()},
        {"seed", [](Campaign& c) { c.seed = 1337; }, "seed: registered 20260307, now 1337"},
        {"money", [](Campaign& c) { c.envelopes.global = MicroUsd::from_micros(20'000'001); },
         "envelope in micro-USD global: registered 20000000, now 20000001"},
        {"task money", [](Campaign& c) { c.envelopes.tasks.clear(); },
         "envelope in micro-USD task:json-lib: registered 7000001, now absent"},
        {"method money",
         [](Campaign& c) { c.envelopes.methods["noop"] = MicroUsd::from_micros(5); },
         "envelope in micro-USD method:noop: not registered, now 5"},
        {"stratum money",
         [](Campaign& c) { c.envelopes.strata["language"]["go"] = MicroUsd::from_micros(7); },
         "envelope in micro-USD stratum:language=go: not registered, now 7"},
        {"alerts", [](Campaign& c) { c.watch.alerts = {90}; },
         "analysis budget_alerts: registered \"50, 80, 95 % of each envelope spent\", now \"90 % "
         "of each envelope spent\""},
        {"dominance",
         [](Campaign& c) { c.watch.dominance.action = BudgetWatch::Dominance::Action::kOff; },
         "analysis dominance: registered \"note at 80 % of a run's money with fewer than 1 "
         "milestones\", now \"off\""},
        {"rate", [](Campaign& c) { c.rates.providers["acme"] = 60; },
         "analysis rates.providers.acme: not registered, now \"60 in any minute\""},
        {"cap", [](Campaign& c) { c.caps.tokens = 1; }, "cap tokens: registered 100000, now 1"},
        {"prices", [](Campaign& c) { c.cost_model.version = "fallback-1"; },
         "cost model version: registered \"file\", now \"fallback-1\""},
        {"strata", [](Campaign& c) { c.strata.push_back("type"); },
         "strata: registered [language], now [language type]"},
        {"stages", [](Campaign& c) { c.stages[0].name = "pilot"; },
         "stages: registered [main], now [pilot]"},
        {"replicates", [](Campaign& c) { c.replicates = 3; }, "replicates: registered 2, now 3"},
        {"name", [](Campaign& c) { c.name = "other"; },
         "campaign: registered \"pilot\", now \"other\""},
    };
    for (const Row& row : rows) {
      CAPTURE(std::string(row.what));
      Campaign changed = campaign();
      row.change(changed);
      CHECK(differences(registered(), registered(changed)) ==
            std::vector<std::string>{row.expected});
    }
    Registration now = registered();
    now.plan = sha256("another plan");
    now.analysis["alpha"] = "0.01";
    CHECK(differences(registered(), now).size() == 2);
    // Frozen before alerts were registered: the defaults hold, and only they.
    Registration old = registered();
    old.analysis.erase("budget_alerts");
    old.analysis.erase("dominance");
    CHECK(differences(old, registered()).empty());
    Campaign silent = campaign();
    silent.watch.alerts.clear();
    CHECK(differences(old, registered(silent)).size() == 1);
  }

  TEST_CASE("the settings of analysis say what its plan says, and are not compared twice") {
    const Registration plain = registered();
    CHECK(plain.analysis.at("primary_endpoint") ==
          "mean over tasks of their success rates over scorable runs");
    CHECK(plain.analysis.at("interval").starts_with("korn_graubard"));
    Campaign c = campaign();
    c.analysis.emplace();
    c.analysis->estimand = AnalysisPlan::Estimand::kRunMean;
    c.analysis->interval = AnalysisPlan::RateInterval::kWilson;
    c.analysis->alpha = {100'000};
    const Registration planned = registered(c);
    CHECK(planned.analysis.at("primary_endpoint") == "success rate over scorable runs");
    CHECK(planned.analysis.at("interval").starts_with("wilson"));
    CHECK(planned.analysis.at("alpha") == "0.1");
    CHECK(differences(plain, planned) ==
          std::vector<std::string>{
              "analysis plan alpha: registered \"0.05\", now \"0.1\"",
              "analysis plan estimand: registered \"task_mean\", now \"run_mean\"",
              "analysis plan interval: registered \"korn_graubard\", now \"wilson\""});
    // Versions of before wrote the same words whatever the plan was.
    Registration old = planned;
    old.analysis["primary_endpoint"] = "success rate over scorable runs";
    old.analysis["interval"] = "Wilson score";
    old.analysis["alpha"] = "0.05";
    CHECK(differences(old, planned).empty());
  }

  TEST_CASE("caps of stages and tasks, and how often a run is tried, are registered") {
    Campaign c = campaign();
    c.stages[0].caps.wall = std::chrono::seconds(2);
    c.task_caps["json-lib"].tokens = 5;
    c.caps.calls_per_minute = 60;
    const Registration before = registered(c);
    CHECK(*before.limits == std::map<std::string, std::int64_t>{{"campaign:calls_per_minute", 60},
                                                                {"infrastructure_retries", 3},
                                                                {"isolation", 0},
                                                                {"stage:main:wall", 2000},
                                                                {"task:json-lib:tokens", 5}});
    const auto back = parse_registration(to_json(before));
    REQUIRE(back.ok());
    CHECK(*back == before);
    c.stages[0].caps.wall = std::chrono::seconds(59);
    c.task_caps.clear();
    c.infrastructure_retries = 9;
    c.caps.calls_per_minute = 6;
    c.isolation = Isolation::kUserspace;
    CHECK(differences(before, registered(c)) ==
          std::vector<std::string>{"limit campaign:calls_per_minute: registered 60, now 6",
                                   "limit infrastructure_retries: registered 3, now 9",
                                   "limit isolation: registered 0, now 1",
                                   "limit stage:main:wall: registered 2000, now 59000",
                                   "limit task:json-lib:tokens: registered 5, now absent"});
    // Of a version that did not register them nobody knows.
    Registration older = before;
    older.limits.reset();
    CHECK(differences(older, registered(c)).empty());
    CHECK(*parse_registration(to_json(older)) == older);
  }

  TEST_CASE(
      "tasks that share a repository make it the unit, but not of what was registered before") {
    Campaign c = campaign();
    c.contracts[0].repository.source = "json-lib";
    c.contracts.resize(2, c.contracts.front());
    c.contracts[1].id = "json-lib-2";
    using Unit = AnalysisPlan::Unit;
    for (const bool written : {false, true}) {
      if (written) c.analysis.emplace();
      c.contracts[1].repository.source = "https://example.org/other.git";
      CHECK_FALSE(registered_plan(registered(c)).unit);
      c.contracts[1].repository = c.contracts[0].repository;
      c.contracts[1].repository.source += "/.git/";
      const Registration shared = registered(c);
      CHECK(registered_plan(c).unit == Unit::kRepository);
      CHECK(registered_plan(shared).unit == Unit::kRepository);
      CHECK(*parse_registration(to_json(shared)) == shared);
      // Registered by a version that had no units: it keeps its tasks, and may go on.
      Registration before = shared;
      before.analysis.erase("unit");
      CHECK_FALSE(registered_plan(before).unit);
      CHECK(differences(before, shared).empty());
      CHECK(differences(shared, shared).empty());
      Campaign tasks = c;
      if (!written) tasks.analysis.emplace();
      tasks.analysis->unit = Unit::kTask;
      CHECK(registered_plan(registered(tasks)).unit == Unit::kTask);
      for (const Registration& r : {shared, before}) {
        CHECK_FALSE(differences(r, registered(tasks)).empty());
        CHECK_FALSE(differences(registered(tasks), r).empty());
      }
    }
  }

  TEST_CASE("a plan of analysis is registered whole, and none promises the defaults") {
    const Registration without = registered();
    CHECK(to_json(without).find("analysis_plan") == std::string::npos);
    Campaign c = campaign();
    c.analysis.emplace();
    const Registration defaults = registered(c);
    CHECK(frozen_digest(defaults) != frozen_digest(without));
    CHECK(differences(without, defaults).empty());
    c.analysis->contrasts = {{"reference", "noop"}};
    c.analysis->estimand = AnalysisPlan::Estimand::kRunMean;
    c.analysis->interval = AnalysisPlan::RateInterval::kWilson;
    c.analysis->alpha = {10'000};
    c.analysis->pass_k = {1, 8};
    c.analysis->multiplicity = AnalysisPlan::Multiplicity::kMaxT;
    c.analysis->draws = 10'000;
    c.analysis->weights_key = "language";
    c.analysis->weights = {{"go", {400'000}}, {"rust", {600'000}}};
    c.analysis->unit = AnalysisPlan::Unit::kTask;
    const Registration with = registered(c);
    const auto back = parse_registration(to_json(with));
    REQUIRE_MESSAGE(back.ok(), back.error().detail);
    CHECK(*back == with);
    CHECK(to_json(with).find("\"alpha\": \"0.01\"") != std::string::npos);
    const auto told = differences(without, with);
    CHECK(told.size() == 9);
    CHECK(told[1] ==
          "analysis plan bootstrap: registered \"{\"draws\":2000}\", now "
          "\"{\"draws\":10000}\"");
    CHECK(differences(with, without).size() == 9);
    // What is as it always was keeps its bytes.
    CHECK(to_json(defaults).find("multiplicity") == std::string::npos);
    CHECK(to_json(defaults).find("bootstrap") == std::string::npos);
    CHECK(told[0] == "analysis plan alpha: registered \"0.05\", now \"0.01\"");
    // Written apart from the plan's own, which is what is replaced below.
    Registration written = with;
    written.analysis["alpha"] = "0.05";
    // A member that this version does not follow is refused, like one that is missing or wrong.
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"\"estimand\": \"run_mean\"", "\"estimand\": \"median\""},
             {"\"alpha\": \"0.01\"", "\"alpha\": \"0\""},
             {"\"alpha\": \"0.01\"", "\"alpha\": 0.01"},
             {"\"estimand\": \"run_mean\",", "\"estimand\": \"run_mean\", \"more\": 1,"},
             {"\"multiplicity\": \"max_t\"", "\"multiplicity\": \"bonferroni\""},
             {"\"draws\": 10000", "\"draws\": 999"},
             {"\"unit\": \"task\"", "\"unit\": \"run\""},
             {"\"go\": \"0.4\"", "\"go\": \"0.5\""},
             {"\"go\": \"0.4\"", "\"go\": 0.4"},
             {"\"draws\": 10000", "\"draws\": \"10000\""},
             {"\"estimand\": \"run_mean\",", ""}}) {
      CAPTURE(to);
      CHECK(parse_registration(replaced(to_json(written), from, to))
                .error()
                .detail.starts_with("frozen.analysis_plan"));
    }
  }

  TEST_CASE("inputs of a projection are registered where they are there") {
    const Registration without = registered();
    CHECK(to_json(without).find("cost_model_inputs") == std::string::npos);
    Campaign c = campaign();
    c.cost_inputs.emplace().digest = sha256("inputs");
    const Registration with = registered(c);
    CHECK(frozen_digest(with) != frozen_digest(without));
    const auto back = parse_registration(to_json(with));
    REQUIRE(back.ok());
    CHECK(*back == with);
    CHECK(differences(with, with).empty());
    CHECK(differences(with, without) ==
          std::vector<std::string>{"projection inputs: registered " + sha256("inputs").short_hex() +
                                   ", now absent"});
    c.cost_inputs->digest = sha256("better inputs");
    CHECK(differences(with, registered(c)) ==
          std::vector<std::string>{"projection inputs: registered " + sha256("inputs").short_hex() +
                                   ", now " + sha256("better inputs").short_hex()});
    // A forecast made later breaks no promise; it is not a registered one.
    CHECK(differences(without, with).empty());
    std::string broken = to_json(with);
    broken.replace(broken.find(sha256("inputs").hex()), 4, "nope");
    CHECK(parse_registration(broken).error().detail.starts_with(
        "frozen.cost_model_inputs: expected"));
  }

  TEST_CASE("a removal needs a known task and a reason and happens once") {
    Registration r = registered();
    CHECK(add_removal(r, "web-api", "why", WallTime(1)).error().code == Errc::kNotFound);
    CHECK(add_removal(r, "json-lib", " \n", WallTime(1)).error().code == Errc::kInvalid);
    CHECK(add_removal(r, "json-lib", std::string(5000, 'x'), WallTime(1)).error().code ==
          Errc::kInvalid);
    CHECK(add_removal(r, "json-lib", "\xff", WallTime(1)).error().code == Errc::kInvalid);
    CHECK(add_removal(r, "json-lib", "why", WallTime(1), "\xff").error().code == Errc::kInvalid);
    CHECK(r == registered());
    REQUIRE(add_removal(r, "json-lib", "why", WallTime(1)).ok());
    CHECK(add_removal(r, "json-lib", "why", WallTime(2)).error().code == Errc::kConflict);
    CHECK(r.removals.size() == 1);
  }

  TEST_CASE("a file that was edited is refused and the field is named") {
    const std::string json = to_json(registered());
    struct Row {
      const char* from;
      const char* to;
      const char* expected;
    };
    const Row rows[] = {
        {"\"seed\": 20260307", "\"seed\": 1337", "the frozen part was changed after the freeze"},
        {"\"seed\": 20260307", "\"seed\": 4294967296",
         "frozen.seed: 4294967296 is more than 4294967295"},
        {"\"seed\": 20260307", "\"seed\": -1", "frozen.seed: expected a whole number"},
        {"\"seed\": 20260307", "\"seed\": 1.5", "frozen.seed: expected a whole number"},
        {"\"seed\": 20260307", "\"sede\": 20260307", "frozen.seed: missing"},
        {"\"seed\": 20260307", "\"seed\": 20260307, \"more\": 1", "frozen.more: unknown field"},
        {"\"seed\": 20260307", "\"seed\": 20260307, \"seed\": 1", "duplicate key"},
        {"\"schema_version\": 1", "\"schema_version\": 2", "frozen.schema_version: expected 1"},
        {"\"strata\": [", "\"strata\": [7,", "frozen.strata[0]: expected text, found number"},
        {"\"version\": \"file\"", "\"version\": null",
         "frozen.cost_model.version: expected text, found null"},
        {"\"removals\": []", "\"removals\": {}", "removals: expected a list, found object"},
        {"\"removals\": []", "\"removals\": [{\"task\": \"json-lib\"}]",
         "removals[0].reason: missing"},
        {"\"removals\": []", "\"removals\": [{\"task\": \"x\", \"reason\": \"y\", \"at_ms\": 1}]",
         "removals: task \"x\" is not in the registration"},
        {"\"frozen\": {", "\"frozen\": 1, \"x\": {", "frozen: expected an object, found number"},
    };
    for (const Row& row : rows) {
      CAPTURE(std::string(row.to));
      const auto r = parse_registration(replaced(json, row.from, row.to));
      REQUIRE(!r.ok());
      CAPTURE(r.error().detail);
      CHECK(r.error().detail.find(row.expected) != std::string::npos);
    }
    Json explicit_default = parse_json(to_json(registered())).value();
    explicit_default["frozen"]["stage_rules"] = Json::object();
    explicit_default["digest"] = sha256(*canonical_json(explicit_default["frozen"])).hex();
    CHECK(parse_registration(explicit_default.dump()).error().detail ==
          "frozen: not as this version writes it");
    for (const char* text : {"", "{}", "[]", "null", "{\"frozen\":", "\xff"})
      CHECK(!parse_registration(text).ok());
    for (std::size_t n = 0; n + 1 < json.size(); n += 7)
      CHECK(!parse_registration(json.substr(0, n)).ok());
  }

  TEST_CASE("a cap beyond what JSON can hold is refused when registering") {
    Campaign c = campaign();
    c.caps.tokens = ~std::uint64_t{0};
    const auto r = make_registration(c, Digest(), WallTime(0));
    REQUIRE(!r.ok());
    CHECK(r.error().code == Errc::kInvalid);
  }
}
