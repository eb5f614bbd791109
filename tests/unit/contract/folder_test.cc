// What lies in a campaign's folder, and how much of it there may be.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/unit/contract/campaign_folder.h"

namespace proctor {
namespace {

using test::Folder;
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
}

}  // namespace proctor
