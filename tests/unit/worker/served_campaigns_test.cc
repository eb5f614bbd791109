// What a worker's home says of the campaigns that it served.
#include "worker/shell/coordinators.h"

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

  TEST_CASE("who says the id of another's campaign gets a name of its own and takes no place") {
    const TempDir home = TempDir::create().value();
    const std::string real = who_of("its key"), other = who_of("another key");
    CHECK(real != other);
    CHECK(who_of("") != real);
    CHECK(kept_name({}, "night-1", real) == "night-1");
    remember_campaign(home.path(), {"night-1", "ipc:///tmp/a folder/socket", real});
    std::vector<ServedCampaign> served = served_campaigns(home.path());
    CHECK(served == std::vector<ServedCampaign>{{"night-1", "ipc:///tmp/a folder/socket", real}});
    CHECK(kept_name(served, "night-1", real) == "night-1");
    CHECK(kept_name(served, "night-2", other) == "night-2");
    const std::optional<std::string> apart = kept_name(served, "night-1", other);
    REQUIRE(apart.has_value());
    CHECK(*apart != "night-1");
    CHECK(id_of(*apart) == "night-1");
    CHECK(id_of("night-1") == "night-1");
    CHECK(is_kept_apart(*apart));
    CHECK_FALSE(is_kept_apart("night-1"));
    CHECK_FALSE(is_kept_apart("look_at_this-0123456789ab"));
    // Without a key it is nobody that has one.
    CHECK(id_of(kept_name(served, "night-1", who_of("")).value()) == "night-1");
    CHECK(kept_name(served, "night-1", who_of("")) != "night-1");
    // It has that name in the next life too, and the first keeps its own.
    remember_campaign(home.path(), {*apart, "tcp://b:1", other});
    served = served_campaigns(home.path());
    CHECK(kept_name(served, "night-1", other) == apart);
    CHECK(kept_name(served, "night-1", real) == "night-1");
    // However many ids it says.
    for (int i = 0; i < 200; ++i) take(served, {"x" + std::to_string(i), "tcp://b:1", other});
    CHECK(served.size() == 64);
    CHECK(kept_name(served, "night-1", real) == "night-1");
    CHECK(kept_name(served, "night-1", other) != "night-1");
    // What an earlier build kept belongs to whoever comes first, as it did then.
    CHECK(kept_name({{"night-1", "tcp://a:1"}}, "night-1", other) == "night-1");
    const std::string longest(100, 'n');
    CHECK_FALSE(kept_name({{longest, "tcp://a:1", real}}, longest, other).has_value());
  }
}
