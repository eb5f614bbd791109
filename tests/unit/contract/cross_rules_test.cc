#include <doctest/doctest.h>

#include "common/base/files.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/scaffold.h"
#include "tests/unit/contract/support.h"

namespace proctor {
namespace {

using test::replaced;

// A scaffolded campaign on disk with more lines in its budget, which begin in line 29.
struct Loaded {
  std::string errors;
  std::optional<Campaign> campaign;
};
Loaded load_with(const std::string& budget, const std::string& strata = "") {
  const TempDir dir = TempDir::create("cross").value();
  const auto put = [&](const std::string& path, const std::string& text) {
    const fs::path file = dir.path() / path;
    REQUIRE(make_dirs(file.parent_path()).ok());
    REQUIRE(write_file(file, text, Durability::kLazy).ok());
  };
  for (const auto& [path, content] : scaffold_files("first")) {
    std::string text = content;
    if (path == "campaign.yaml") {
      text = replaced(text, "  run: \"1.00\"\n", "  run: \"1.00\"\n" + budget + "\n");
      if (!strata.empty())
        text = replaced(text, "[language, runtime, dependencies, type]", "[" + strata + "]");
    }
    if (path == "contracts/fix-greeting.yaml") {
      text = replaced(text, kCommitPlaceholder, std::string(40, 'a'));
      text = replaced(text, "dependencies: none}", "dependencies: none, a: x, b: x, c: x, d: x}");
      put("contracts/second.yaml", replaced(replaced(text, "id: fix-greeting", "id: second"),
                                            "language: shell", "language: python 3"));
    }
    put(path, text);
  }
  Diagnostics out;
  Result<Campaign> campaign = load_campaign(dir.path(), out);
  Loaded loaded{out.text(), std::nullopt};
  if (campaign.ok()) loaded.campaign = std::move(campaign).value();
  const std::string prefix = dir.path().string() + "/";
  for (std::size_t at = loaded.errors.find(prefix); at != std::string::npos;
       at = loaded.errors.find(prefix))
    loaded.errors.erase(at, prefix.size());
  return loaded;
}

MicroUsd cents(std::int64_t n) {
  return MicroUsd::from_micros(n * 10'000);
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("an envelope shared with other campaigns needs a name, a cap and their Redis") {
    const std::string redis = "\nredis: unix:/r";
    const std::string whole = "  shared: {name: lab-november, cap: \"5000.00\"}";
    const Loaded good = load_with(whole + redis);
    CHECK(good.errors == "");
    REQUIRE(good.campaign);
    REQUIRE(good.campaign->envelopes.shared);
    CHECK(good.campaign->envelopes.shared->scope() == "shared:lab-november");
    CHECK(good.campaign->envelopes.shared->cap == cents(500'000));
    struct Row {
      std::string budget, expected;
    };
    const Row rows[] = {
        {whole,
         "budget.shared: found an envelope shared with other campaigns and no Redis that they "
         "share, expected the address of theirs beside it, as in redis: \"tcp://host:6379\""},
        {whole + "\n  ledger: journal",
         "budget.shared: found an envelope shared with other campaigns and no Redis"},
        {"  shared: {name: lab-november}" + redis, "budget.shared.cap: found nothing"},
        {"  shared: {cap: \"5000.00\"}" + redis, "budget.shared.name: found nothing"},
        {"  shared: {name: \"Lab November\", cap: \"5000.00\"}" + redis,
         "budget.shared.name: found \"Lab November\", expected an id"},
        {"  shared: {name: lab, cap: \"5000.00\", limit: 3}" + redis, "the unknown key \"limit\""},
        {"  shared: lab" + redis, "budget.shared: found \"lab\""},
        {"  shared: {name: lab, cap: \"19.99\"}" + redis,
         "budget.shared.cap: found an envelope of all campaigns together of 19.99 USD, expected at "
         "least the global envelope of this one, 20.00 USD"},
    };
    for (const Row& row : rows) {
      const Loaded bad = load_with(row.budget);
      CAPTURE(bad.errors);
      CHECK(bad.errors.find(row.expected) != std::string::npos);
    }
  }

  TEST_CASE("envelopes across the tree and what is told are read") {
    const Loaded plain = load_with("");
    CHECK(plain.errors == "");
    REQUIRE(plain.campaign);
    CHECK(plain.campaign->envelopes.methods.empty());
    CHECK(plain.campaign->watch.alerts == std::vector<std::uint32_t>{50, 80, 95});
    CHECK(plain.campaign->watch == BudgetWatch{});
    const Loaded all = load_with(
        "  methods: {scripted: \"8.00\", noop: 1.00}\n"
        "  strata: {language: {shell: \"15.00\", \"python 3\": \"20.00\"}, type: {bug_fix: 2}}\n"
        "  alerts: [25, 100]\n"
        "  dominance: {action: stop, percent: 60, milestones: 2}");
    CHECK(all.errors == "");
    REQUIRE(all.campaign);
    const Envelopes& e = all.campaign->envelopes;
    CHECK(e.methods ==
          std::map<std::string, MicroUsd>{{"noop", cents(100)}, {"scripted", cents(800)}});
    CHECK(e.strata.at("language").at("python 3") == cents(2000));
    CHECK(e.strata.at("type").at("bug_fix") == cents(200));
    CHECK(all.campaign->watch.alerts == std::vector<std::uint32_t>{25, 100});
    CHECK(all.campaign->watch.dominance ==
          BudgetWatch::Dominance{BudgetWatch::Dominance::Action::kStop, 60, 2});
    CHECK(load_with("  alerts: []").campaign->watch.alerts.empty());
  }

  TEST_CASE("weights speak for levels that tasks have, for what has none gives no estimate") {
    const std::string head = "\nanalysis: {weights: {language: ";
    const Loaded both = load_with(head + "{shell: \"0.6\", \"python 3\": 0.4}}}");
    CHECK(both.errors == "");
    REQUIRE(both.campaign);
    CHECK(both.campaign->analysis->weights.at("shell").value == 600'000);
    CHECK(load_with(head + "{shell: \"0.6\", \"pyton 3\": 0.4}}}").errors ==
          "campaign.yaml:30:47: analysis.weights.language.pyton 3: found the unknown level "
          "\"pyton 3\", expected a level of language that a contract has (did you mean \"python "
          "3\"?)\n");
  }

  TEST_CASE("every mistake in an envelope across the tree is named with its place") {
    struct Row {
      const char* budget;
      const char* expected;  // after "campaign.yaml:29:"
    };
    const Row rows[] = {
        {"  methods: {scriptd: \"8.00\"}",
         "13: budget.methods.scriptd: found the unknown method \"scriptd\", expected the name of a "
         "method (did you mean \"scripted\"?)\n"},
        {"  methods: {scripted: \"20.01\"}",
         "13: budget.methods.scripted: found a method envelope of 20.01 USD, expected at most the "
         "global envelope, 20.00 USD\n"},
        {"  methods: {scripted: \"0.99\"}",
         "13: budget.methods.scripted: found a method envelope of 0.99 USD, expected at least 1.00 "
         "USD, the cap of one run of fix-greeting\n"},
        {"  methods: [scripted]",
         "12: budget.methods: found a list, expected a mapping of methods to amounts\n"},
        {"  methods: {scripted: -1}",
         "23: budget.methods.scripted: found \"-1\", expected an amount in USD such as "
         "\"5.00\": an amount cannot be negative\n"},
        {"  strata: {langage: {shell: \"5.00\"}}",
         "12: budget.strata.langage: found the unknown stratum \"langage\", expected one of the "
         "campaign's strata (did you mean \"language\"?)\n"},
        {"  strata: {language: {shel: \"5.00\"}}",
         "23: budget.strata.language.shel: found the unknown level \"shel\", expected a level of "
         "language that a contract has (did you mean \"shell\"?)\n"},
        {"  strata: {language: {shell: \"21.00\"}}",
         "23: budget.strata.language.shell: found a stratum envelope of 21.00 USD, expected at "
         "most the global envelope, 20.00 USD\n"},
        {"  strata: {language: {\"python 3\": \"0.10\"}}",
         "23: budget.strata.language.python 3: found a stratum envelope of 0.10 USD, expected at "
         "least 1.00 USD, the cap of one run of second\n"},
        {"  strata: {language: \"5.00\"}",
         "22: budget.strata.language: found \"5.00\", expected a mapping of its levels to "
         "amounts\n"},
        {"  strata: \"5.00\"",
         "11: budget.strata: found \"5.00\", expected a mapping of strata to levels and amounts\n"},
        {"  alerts: [80, 50]",
         "16: budget.alerts[1]: found \"50\", expected a whole percentage from 1 to 100, above the "
         "one "
         "before\n"},
        {"  alerts: [101]",
         "12: budget.alerts[0]: found \"101\", expected a whole percentage from 1 to 100, above "
         "the "
         "one before\n"},
        {"  alerts: [0.5]",
         "12: budget.alerts[0]: found \"0.5\", expected a whole percentage from 1 to 100, above "
         "the "
         "one before\n"},
        {"  dominance: {action: kill}",
         "23: budget.dominance.action: found \"kill\", expected off, note or stop\n"},
        {"  dominance: {percent: 0}",
         "24: budget.dominance.percent: found \"0\", expected a whole number from 1 to 100\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.budget);
      CHECK(load_with(row.budget).errors == "campaign.yaml:29:" + std::string(row.expected));
    }
  }

  TEST_CASE("no run lies in more envelopes than a reservation holds") {
    const std::string four =
        "  strata: {a: {x: \"5\"}, b: {x: \"5\"}, c: {x: \"5\"}, d: {x: \"5\"}";
    CHECK(load_with(four + "}\n  methods: {noop: \"5\"}", "a, b, c, d, language").errors == "");
    const std::string five = four + ", language: {shell: \"5\"}}";
    CHECK(load_with(five, "a, b, c, d, language").errors == "");
    CHECK(load_with(five + "\n  methods: {noop: \"5\"}", "a, b, c, d, language").errors ==
          "campaign.yaml:29:11: budget.strata: found 9 envelopes around a run of fix-greeting "
          "(global, stage, task, method, 5 strata), expected at most 8, which is what one "
          "reservation holds\n");
  }
}

}  // namespace proctor
