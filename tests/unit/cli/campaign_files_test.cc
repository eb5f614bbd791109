// Rules that a campaign has to keep before it is registered, and no longer after.
#include "coordinator/cli/campaign_files.h"

#include <doctest/doctest.h>

#include "common/base/files.h"
#include "common/contract/scaffold.h"

using namespace proctor;
using namespace proctor::cli;

TEST_SUITE("cli") {
  TEST_CASE("a failure mode that is never asserted is refused until the campaign is registered") {
    const TempDir dir = TempDir::create("files").value();
    const auto put = [&](const std::string& path, std::string text) {
      if (const std::size_t at = text.find(kCommitPlaceholder); at != std::string::npos)
        text.replace(at, kCommitPlaceholder.size(), std::string(40, 'a'));
      REQUIRE(make_dirs((dir.path() / path).parent_path()).ok());
      REQUIRE(write_file(dir.path() / path, text, Durability::kLazy).ok());
    };
    for (const auto& [path, text] : scaffold_files("first"))
      put(path, path == "campaign.yaml" ? text + "failure_modes: failure_modes.jsonl\n" : text);
    const auto loads = [&](const std::string& check) {
      put("failure_modes.jsonl", R"({"id":"team.first","gate":"build","check":")" + check +
                                     R"(","attribution":"agent","severity":"none",)"
                                     R"("sentence":"First."})");
      const Result<Campaign> loaded = load_checked(dir.path(), Outside::kSkip);
      if (loaded.ok()) CHECK(loaded->failure_modes.find(check) != std::string::npos);
      return loaded.ok();
    };
    CHECK(loads("syntax"));
    CHECK_FALSE(loads("syntaxes"));
    put("registration.json", "{}");
    CHECK(loads("syntaxes"));
    CHECK_FALSE(loads("two words"));  // no rule that can be read
  }
}
