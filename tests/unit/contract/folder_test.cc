// What lies in a campaign's folder, and how much of it there may be.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/unit/contract/campaign_folder.h"

namespace proctor {
namespace {

using test::Folder;
using test::kTask;
using test::kYaml;

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("what the pattern of contracts names and is no regular file is not left out") {
    Folder folder;
    REQUIRE(::mkfifo((folder.path() / "contracts/pipe.yaml").c_str(), 0600) == 0);
    CHECK(folder.errors().find("contracts: found contracts/pipe.yaml, no regular file") !=
          std::string::npos);
    fs::remove(folder.path() / "contracts/pipe.yaml");
    fs::create_directory(folder.path() / "contracts/folder.yaml");
    CHECK(folder.errors().find("contracts: found contracts/folder.yaml, a folder") !=
          std::string::npos);
    fs::remove(folder.path() / "contracts/folder.yaml");
    fs::create_directory(folder.path() / "contracts/patches");
    CHECK(folder.errors() == "");
  }

  TEST_CASE("more stages than a plan may have are a mistake of campaign.yaml") {
    Folder folder;
    std::string stages = "stages:\n";
    for (int i = 0; i < 101; ++i) stages += "  - {name: s" + std::to_string(i) + "}\n";
    folder.put(kYaml, folder.get(kYaml) + stages);
    CHECK(folder.errors().find("stages: found 101 stages, expected 1 to 100") != std::string::npos);
  }

  TEST_CASE("a failure mode of the campaign's own names a check of a contract, and its gate") {
    const auto told = [](const std::string& check, const std::string& gate,
                         const std::string& rubric = "reference_patch:") {
      Folder folder;
      folder.change(kTask, "reference_patch:", rubric);
      folder.put(kYaml, folder.get(kYaml) + "failure_modes: failure_modes.jsonl\n");
      folder.put("failure_modes.jsonl",
                 R"({"id":"team.first","gate":"build","check":"syntax","attribution":"agent",)"
                 R"("severity":"none","sentence":"First."})"
                 "\n\n"
                 R"({"id":"team.second","gate":")" +
                     gate + R"(","check":")" + check +
                     R"(","attribution":"agent","severity":"none","sentence":"Second."})" + "\n");
      return folder.errors();
    };
    CHECK(told("greets", "functional") == "");
    CHECK(told("setup", "build") == "");
    const std::string unknown = told("greet", "functional");
    CHECK_MESSAGE(unknown.starts_with("failure_modes.jsonl:3:1: check: "), unknown);
    CHECK_MESSAGE(unknown.find("\"greets\"") != std::string::npos, unknown);
    const std::string other = told("greets", "build");
    CHECK_MESSAGE(other.starts_with("failure_modes.jsonl:3:1: gate: "), other);
    CHECK_MESSAGE(other.find("\"functional\"") != std::string::npos, other);
    CHECK(told("nothing-like-it", "safety").starts_with("failure_modes.jsonl:3:1: check: "));
    // A check that only rates a patch guards no gate, and its own name is no help.
    const std::string rates =
        told("greets", "functional",
             "rubric: {envelope: {lines: 1, files: 1}, maint: [greets]}\nreference_patch:");
    CHECK_MESSAGE(rates.starts_with("failure_modes.jsonl:3:1: check: "), rates);
    CHECK_MESSAGE(rates.find("did you mean") == std::string::npos, rates);
  }
}

}  // namespace proctor
