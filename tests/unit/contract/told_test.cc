// One mistake in a campaign's files is one error of `proctor check`.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/contract/campaign_folder.h"

namespace proctor {
namespace {

using test::Folder;
using test::kTask;
using test::kYaml;
using test::replaced;

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("one mistake in a campaign is one error, and what only follows from it is none") {
    struct Change {
      const char* file;
      const char* from;
      const char* to;
    };
    struct Row {
      std::vector<Change> changes;
      const char* field;  // of the only error
    };
    const char* const kRun = "  run: \"1.00\"";
    const char* const kNames =
        "  run: \"1.00\"\n  tasks: {fix-greeting: \"2.00\"}\n  methods: {scripted: \"2.00\"}\n"
        "  strata: {language: {shell: \"3.00\"}}";
    const Change names{kYaml, kRun, kNames};
    const Change analysis{kYaml, "replicates: 2",
                          "replicates: 2\nanalysis: {contrasts: [[scripted, noop]]}"};
    const Row rows[] = {
        {{names, analysis}, ""},
        // Tasks that cannot be read, or are not there.
        {{names, {kYaml, "replicates: 2", "contracts: [tasks/*.yaml]"}}, "contracts: "},
        {{names, {kTask, "id: fix-greeting", "id: Fix greeting"}}, "id: "},
        {{names, {kTask, "id: fix-greeting", "id: [fix-greeting"}}, "document: "},
        // Methods likewise.
        {{names, analysis, {kYaml, "name: scripted", "name: scrip ted"}}, "methods[2].name: "},
        {{names, analysis, {kYaml, "- noop", "- nop"}}, "methods[0]: "},
        // Amounts for which a default stands in.
        {{names, {kYaml, "global: \"20.00\"", "global: 20,00"}}, "budget.global: "},
        {{{kYaml, "  task: \"10.00\"\n  run: \"1.00\"", "  task: \"3.00\"\n  run: \"1,00\""}},
         "budget.run: "},
        {{{kYaml, kRun, "  rnu: \"1.00\"\n  methods: {scripted: \"2.00\"}"}}, "budget.rnu: "},
        {{{kYaml, kRun, "  run: \"1,00\"\n  methods: {scripted: \"2.00\"}"}}, "budget.run: "},
        {{{kYaml, "wall: 5m", "wall: 5 minutes"},
          {"pilot_cost_model.csv", "0.0005", "5"},
          {kYaml, kRun, "  run: \"9.00\""}},
         "caps.wall: "}};
    for (const Row& row : rows) {
      Folder folder;
      for (const Change& change : row.changes) folder.change(change.file, change.from, change.to);
      const std::string errors = folder.errors();
      CAPTURE(row.field);
      CAPTURE(errors);
      CHECK(std::count(errors.begin(), errors.end(), '\n') == (*row.field == '\0' ? 0 : 1));
      CHECK(errors.find(row.field) != std::string::npos);
    }
  }

  TEST_CASE("a key of strata that no contract has is told once, of the campaign") {
    Folder folder;
    folder.put("contracts/second.yaml",
               replaced(folder.get(kTask), "id: fix-greeting", "id: second"));
    REQUIRE(folder.errors() == "");
    folder.change(kYaml, "strata: [language, runtime, dependencies, type]",
                  "strata: [langage, runtime]");
    folder.change(kYaml, "  run: \"1.00\"",
                  "  run: \"1.00\"\n  strata: {language: {shell: \"3.00\"}}");
    CHECK(folder.errors() ==
          "campaign.yaml:40:9: strata: found \"langage\", which no contract has, expected keys of "
          "which every contract has a value (did you mean \"language\"?)\n");
    // What another contract has is missing in this one.
    folder.put(kTask, replaced(folder.get(kTask), "language: ", "langage: "));
    const std::string errors = folder.errors();
    CHECK_MESSAGE(errors.find("contracts/second.yaml:5:9: strata: found no stratum \"langage\"") !=
                      std::string::npos,
                  errors);
  }
}

}  // namespace proctor
