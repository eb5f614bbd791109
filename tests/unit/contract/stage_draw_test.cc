// Tasks, replicates and order of a stage's own, as campaign.yaml says them.
#include <doctest/doctest.h>

#include "tests/unit/contract/campaign_folder.h"

namespace proctor {
namespace {

using test::Folder;
using test::kTask;
using test::kYaml;

// Two tasks of one stratum each, and these stages.
Folder with_stages(const std::string& stages) {
  Folder folder;
  std::string other = folder.get(kTask);
  other = test::replaced(other, "id: fix-greeting", "id: other");
  other = test::replaced(other, "language: ", "language: x");
  folder.put("contracts/other.yaml", other);
  folder.change(kYaml, "replicates: 2", "replicates: 2\nstages:\n" + stages);
  return folder;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a stage has the tasks, replicates and order it says, else the campaign's") {
    const Folder folder = with_stages(
        "  - {name: first, tasks: {per_stratum: 1}, replicates: 1}\n"
        "  - {name: some, tasks: [other], order: tasks}\n"
        "  - {name: full, replicates: 3}");
    Diagnostics out;
    const auto campaign = load_campaign(folder.path(), out);
    REQUIRE_MESSAGE(out.empty(), out.text());
    const std::vector<Stage>& stages = campaign->stages;
    REQUIRE(stages.size() == 3);
    CHECK(describe(stages[0].draw) == "1 of each stratum, 1 replicate, by rounds");
    CHECK(describe(stages[1].draw) == "other, the campaign's replicates, by tasks");
    CHECK(describe(stages[2].draw) == "every task, 3 replicates, by rounds");
    CHECK(campaign->tasks_of(stages[0]) == 2);
    CHECK(campaign->tasks_of(stages[1]) == 1);
    CHECK(campaign->replicates_of(stages[1]) == 2);
    CHECK(campaign->run_count() == (2 * 1 + 1 * 2 + 2 * 3) * campaign->methods.size());
  }

  TEST_CASE("a cap of a stage need not suffice for a task that the stage has not") {
    const std::string small = ", caps: {usd: \"0.000001\"}}\n  - {name: full}";
    CHECK(with_stages("  - {name: a, tasks: [other]" + small).errors().find("fix-greeting") ==
          std::string::npos);
    CHECK(with_stages("  - {name: a, tasks: [other]" + small).errors().find("other.yaml") !=
          std::string::npos);
    CHECK(with_stages("  - {name: a" + small).errors().find("fix-greeting") != std::string::npos);
  }

  TEST_CASE("a stage of tasks that are not there, or a task in no stage, is refused") {
    const std::pair<const char*, const char*> wrong[] = {
        {"  - {name: a, tasks: [othr]}\n  - {name: b}",
         "stages.a.tasks: found the unknown task \"othr\", expected the id of a contract"},
        {"  - {name: a, tasks: [other]}",
         "stages.a.tasks: found task fix-greeting in no stage for certain"},
        {"  - {name: a, tasks: []}\n  - {name: b}", "expected {per_stratum: N}, or a list"},
        {"  - {name: a, tasks: all}\n  - {name: b}", "expected {per_stratum: N}, or a list"},
        {"  - {name: a, tasks: [other, other]}\n  - {name: b}", "stages[0].tasks"},
        {"  - {name: a, tasks: {per_stratum: 0}}\n  - {name: b}", "stages[0].tasks.per_stratum"},
        {"  - {name: a, tasks: {}}\n  - {name: b}", "stages[0].tasks.per_stratum"},
        {"  - {name: a, tasks: {per_strata: 1}}\n  - {name: b}", "per_stratum"},
        {"  - {name: a, replicates: 0}", "stages[0].replicates"},
        {"  - {name: a, order: rows}", "expected rounds or tasks"}};
    for (const auto& [stages, said] : wrong) {
      CAPTURE(stages);
      const std::string errors = with_stages(stages).errors();
      CAPTURE(errors);
      CHECK(errors.find(said) != std::string::npos);
    }
    // One of each stratum is every task where each has a stratum of its own.
    CHECK(with_stages("  - {name: a, tasks: {per_stratum: 1}}").errors() == "");
    CHECK(with_stages("  - {name: a, tasks: [other]}\n  - {name: b, tasks: [fix-greeting]}")
              .errors() == "");
  }
}

}  // namespace proctor
