// Campaigns of trials: each key that a campaign can have is taken over, given, or as if it were not
// written, in all that derives one.
#include "coordinator/cli/trial_campaign.h"

#include <doctest/doctest.h>

#include "common/contract/bundle.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/document.h"
#include "common/contract/rules.h"

using namespace proctor;
using namespace proctor::cli;

namespace {

enum class Is { kTaken, kGiven, kReset };
struct Row {
  std::string key;
  Is is;
  std::string yaml;  // that writes it, otherwise than where nothing is written
  Is of_try = is;
};

// A key that is in no row fails the test below: decide what trials make of it, in
// trial_campaign(), and say so here.
const std::vector<Row> kRows{
    {"$schema", Is::kReset, "$schema: x"},
    {"name", Is::kTaken, "name: other"},
    {"contracts", Is::kReset, "contracts: [b/*.yaml]"},
    {"methods", Is::kGiven, "methods: [noop]"},
    {"replicates", Is::kGiven, "replicates: 7"},
    {"seed", Is::kTaken, "seed: 4\nseed_deviation: why"},
    {"seed_deviation", Is::kTaken, "seed: 4\nseed_deviation: why"},
    {"caps", Is::kTaken, "caps: {tokens: 9, wall: 9m}"},
    {"strata", Is::kTaken, "strata: [kind]"},
    {"workers", Is::kTaken, "workers: 9"},
    {"slots", Is::kTaken, "slots: 9"},
    {"redis", Is::kReset, "redis: 'tcp://host:6379'"},
    {"infrastructure_retries", Is::kReset, "infrastructure_retries: 9"},
    {"task_caps", Is::kTaken, "task_caps: {a: {tokens: 9}}"},
    {"rates", Is::kTaken, "rates: {calls_per_minute: 9}"},
    {"rates.calls_per_minute", Is::kTaken, "rates: {calls_per_minute: 9}"},
    {"rates.providers", Is::kTaken, "rates: {providers: {p: 9}}"},
    {"policy", Is::kTaken, "policy: {isolation: userspace}"},
    {"policy.isolation", Is::kTaken, "policy: {isolation: userspace}"},
    {"rubric", Is::kTaken, "rubric: {weights: {minimal: \"0.6\", trace: \"0.2\"}}"},
    {"safety", Is::kTaken, "safety: {stop_run: true}"},
    {"acceptance", Is::kTaken, "acceptance: {rerun: 1}"},
    {"failure_modes", Is::kReset, ""},  // a file: below
    {"derived_from", Is::kReset, "derived_from: {campaign: c-1}"},
    {"analysis", Is::kReset, "analysis: {estimand: run_mean}"},
    {"breakers", Is::kGiven,
     "methods: [noop, {name: m, command: x, gateway: {model: z, as: openai}}]\nbreakers: on"},
    {"stages", Is::kReset, "stages: [{name: first}, {name: second}]"},
    {"stages.name", Is::kReset, "stages: [{name: first}]"},
    {"stages.usd", Is::kReset, "stages: [{name: main, usd: \"9.00\"}]"},
    {"stages.caps", Is::kReset, "stages: [{name: main, caps: {tokens: 9}}]", Is::kTaken},
    {"stages.tasks", Is::kReset, "stages: [{name: main, tasks: [b]}]"},
    {"stages.replicates", Is::kReset, "stages: [{name: main, replicates: 9}]"},
    {"stages.order", Is::kReset, "stages: [{name: main, order: tasks}]"},
    {"stages.entry", Is::kReset, "stages: [{name: main}, {name: b, entry: [spend_within]}]"},
    {"stages.exit", Is::kReset, "stages: [{name: main, exit: [spend_within]}]"},
    {"stages.approval", Is::kReset, "stages: [{name: main}, {name: b, approval: {people: 2}}]"},
    {"budget", Is::kReset, "budget: {global: \"80.00\", task: \"9.00\"}", Is::kGiven},
    {"budget.global", Is::kReset, "budget: {global: \"80.00\"}", Is::kGiven},
    {"budget.task", Is::kReset, "budget: {task: \"9.00\"}"},
    {"budget.tasks", Is::kReset, "budget: {tasks: {a: \"9.00\"}}"},
    {"budget.run", Is::kTaken, "budget: {run: \"9.00\"}"},
    {"budget.ledger", Is::kReset, "budget: {ledger: journal}"},
    {"budget.methods", Is::kReset, "budget: {methods: {m: \"9.00\"}}"},
    {"budget.strata", Is::kReset, "budget: {strata: {language: {c: \"9.00\"}}}"},
    {"budget.alerts", Is::kReset, "budget: {alerts: [9]}"},
    {"budget.dominance", Is::kTaken, "budget: {dominance: {percent: 9}}"},
    {"budget.shared", Is::kReset,
     "budget: {shared: {name: lab, cap: \"9.00\"}}\nredis: 'tcp://host:6379'"},
    {"retries", Is::kReset, "retries: {escalate: true}"},
    {"retries.overload", Is::kReset, "retries: {overload: 9}"},
    {"retries.backoff", Is::kReset, "retries: {backoff: 9s}"},
    {"retries.overload_backoff", Is::kReset, "retries: {overload_backoff: 9s}"},
    {"retries.backoff_max", Is::kReset, "retries: {backoff_max: 9s}"},
    {"retries.escalate", Is::kReset, "retries: {escalate: true}"},
    {"retries.park_after", Is::kReset, "retries: {park_after: 9}"},
    {"retries.quarantine_after", Is::kReset, "retries: {quarantine_after: 9}"},
    {"retries.quarantine", Is::kReset, "retries: {quarantine: 9s}"},
    {"retries.quarantine_max", Is::kReset, "retries: {quarantine_max: 9s}"},
};

void add_keys(Keys keys, const std::string& before, std::vector<std::string>& out) {
  for (const std::string_view key : keys) out.push_back(before + std::string(key));
}

Campaign campaign_of(const std::string& yaml) {
  Diagnostics out;
  std::string all = yaml;
  if (!yaml.starts_with("name:")) all += "\nname: n";
  if (!yaml.starts_with("methods:")) all += "\nmethods: [noop, {name: m, command: x}]";
  if (yaml.find("budget:") == std::string::npos) all += "\nbudget: {global: \"50.00\"}";
  if (yaml.find("budget:") != std::string::npos && yaml.find("global:") == std::string::npos)
    all.replace(all.find("budget: {"), 9, "budget: {global: \"50.00\", ");
  const auto document = read_document(all, Format::kYaml, "campaign.yaml", out);
  REQUIRE(document);
  Campaign campaign = parse_campaign(*document, GivenFiles(), out).campaign;
  REQUIRE_MESSAGE(out.empty(), out.text());
  for (const char* id : {"a", "b"}) {
    campaign.contracts.emplace_back();
    campaign.contracts.back().id = id;
  }
  return campaign;
}

// All that a campaign is, but its prices and files.
std::string whole(const Campaign& c) {
  const auto registration = make_registration(c, Digest(), WallTime(0));
  REQUIRE(registration.ok());
  Json out = parse_json(to_json(*registration)).value();
  out["ledger"] = c.ledger == Campaign::LedgerKind::kJournal;
  out["redis"] = c.redis;
  out["shared"] = c.envelopes.shared.has_value();
  out["run"] = c.envelopes.run.micros();
  out["strata"] = c.strata;
  out["workers"] = {c.workers, c.slots};
  out["runs"] = c.run_count();
  return out.dump(1);
}

std::string of_selfcheck(const Campaign& c) {
  const std::vector<TaskVariants> tasks{{&c.contracts[0], {{kVariantReference}, {kVariantNoop}}}};
  return whole(selfcheck_campaign(c, tasks, 3, std::nullopt));
}
std::string of_try(const Campaign& c) {
  if (c.find_method("m") == nullptr) return "";
  return whole(try_campaign(c, "a", "m").value());
}

}  // namespace

TEST_SUITE("trials") {
  TEST_CASE("every key that a campaign can have is decided") {
    std::vector<std::string> keys, rows;
    add_keys(campaign_keys(""), "", keys);
    add_keys(campaign_keys("stages"), "stages.", keys);
    add_keys(campaign_keys("budget"), "budget.", keys);
    add_keys(keys_of<Retries>(), "retries.", keys);
    add_keys(keys_of<Rates>(), "rates.", keys);
    add_keys(campaign_keys("policy"), "policy.", keys);
    for (const Row& row : kRows) rows.push_back(row.key);
    std::ranges::sort(keys);
    std::ranges::sort(rows);
    CHECK(keys == rows);
  }

  TEST_CASE("a trial has what it means of a campaign, and nothing else") {
    const Campaign plain = campaign_of("");
    REQUIRE(of_selfcheck(plain) != whole(plain));
    for (const Row& row : kRows) {
      CAPTURE(row.key);
      const Campaign written = campaign_of(row.yaml);
      CHECK((of_selfcheck(written) == of_selfcheck(plain)) == (row.is != Is::kTaken));
      if (row.of_try != Is::kGiven)
        CHECK((of_try(written) == of_try(plain)) == (row.of_try != Is::kTaken));
    }
  }

  // Structured bindings name every member: another one does not compile until it has its row above,
  // or, where a file of its own says it, its line here.
  TEST_CASE("files beside campaign.yaml: prices are taken, what is expected of runs is not") {
    Campaign c = campaign_of("");
    c.cost_model.run = 7;
    c.cost_inputs.emplace();
    c.failure_modes = "x";
    const auto [folder, name, contracts, methods, replicates, seed, deviation, stages, envelopes,
                watch, caps, task_caps, rates, isolation, strata, workers, slots, ledger, redis,
                infrastructure, retries, weights, safety, rerun, failure_modes, cost_model,
                cost_inputs, analysis, origin, derived_from] = trial_campaign(c, {});
    CHECK(cost_model.run == 7);
    CHECK(failure_modes == "x");
    CHECK_FALSE(cost_inputs);
    const auto& [global, shared, stage, task, tasks, run, by_method, by_stratum] = envelopes;
    CHECK(stage.empty());
    CHECK(stages.size() == 1);
  }

  TEST_CASE("stages of their own change no trial's runs") {
    const Campaign staged = campaign_of(
        "stages:\n  - {name: limited, tasks: [b], replicates: 9, caps: {tokens: 5}}\n"
        "  - {name: paid, tasks: {per_stratum: 1}, replicates: 4, caps: {tokens: 8}, entry: "
        "[complete_or_stopped]}");
    const Campaign tried = try_campaign(staged, "a", "m").value();
    CHECK(tried.run_count() == 1);
    CHECK(tried.stages.front().caps.tokens == 8);  // the first stage that may have the task
    CHECK(try_campaign(staged, "b", "m").value().stages.front().caps.tokens == 5);
    CHECK(try_campaign(staged, "c", "m").error().code == Errc::kInvalid);
    const TaskVariants variants{&staged.contracts[0],
                                {{kVariantReference}, {kVariantNoop}, {"mutant-1", "patch"}}};
    const auto frozen =
        freeze_trials(selfcheck_campaign(staged, {variants}, 3, std::nullopt), {variants}, {});
    REQUIRE(frozen.ok());
    CHECK(frozen->plan.size() == 12);    // 2 contracts, 2 methods, 3 times
    CHECK(frozen->removed.size() == 3);  // the mutant has no noop
    CHECK(frozen->campaign.stages.front().caps.tokens == std::nullopt);
    const auto again =
        freeze_trials(selfcheck_campaign(staged, {variants}, 3, std::nullopt), {variants}, {});
    CHECK(again->id == frozen->id);
  }
}
