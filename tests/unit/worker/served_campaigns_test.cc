// What a worker's home says of the campaigns that it served.
#include "worker/shell/served_campaigns.h"

#include <doctest/doctest.h>

#include "common/base/files.h"

using namespace proctor;

TEST_SUITE("served campaigns") {
  TEST_CASE("each is there once with its last address and the last one served is the last") {
    const TempDir home = TempDir::create().value();
    CHECK(served_campaigns(home.path()).empty());
    remember_campaign(home.path(), {"night", "tcp://a:1"});
    remember_campaign(home.path(), {"pilot", "ipc:///tmp/a folder/socket"});
    remember_campaign(home.path(), {"night", "tcp://b:1"});
    CHECK(served_campaigns(home.path()) ==
          std::vector<ServedCampaign>{{"pilot", "ipc:///tmp/a folder/socket"},
                                      {"night", "tcp://b:1"}});
  }

  TEST_CASE("what a build before wrote is read and what is no campaign is not") {
    const TempDir home = TempDir::create().value();
    REQUIRE(write_file(home.path() / "last-campaign", "tcp://a:1\nnight").ok());
    CHECK(served_campaigns(home.path()) == std::vector<ServedCampaign>{{"night", "tcp://a:1"}});
    REQUIRE(write_file(home.path() / "campaigns", "../night tcp://a:1\nnight\npilot x\n").ok());
    CHECK(served_campaigns(home.path()) == std::vector<ServedCampaign>{{"pilot", "x"}});
  }

  TEST_CASE("it keeps the last few") {
    const TempDir home = TempDir::create().value();
    for (int i = 0; i < 70; ++i)
      remember_campaign(home.path(), {"camp" + std::to_string(i), "tcp://a:1"});
    const std::vector<ServedCampaign> all = served_campaigns(home.path());
    CHECK(all.size() == 64);
    CHECK(all.back().campaign == "camp69");
  }
}
