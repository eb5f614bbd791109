// What an event lists of paths that the candidate's code chose.
#include "worker/shell/run_events.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("run events") {
  TEST_CASE("a list of paths is bounded as it is written, and its count is whole") {
    const std::vector<std::string> paths(1'000, std::string(3'000, '\x01'));
    for (const std::size_t most : {kListedBytes, kListedAgain}) {
      const events::PathList list = path_list(paths, most);
      CHECK(list.count == 1'000);
      CHECK(to_json(list).dump().size() <= most + 2'048);
    }
    const Json few = to_json(path_list({"a", "b"}, kListedAgain));
    CHECK(few == Json{{"count", 2}, {"listed", {"a", "b"}}});
    CHECK(path_list(std::vector<std::string>(2'000, "a")).listed.size() == kListedPaths);
  }

  TEST_CASE("a payload has the members of its kind, and those that are empty only where they say") {
    events::CommandRan ran{"make \xff", std::chrono::milliseconds(9)};
    ran.use.out = {3, 3, sha256("out")};
    const Json tool = events::kTool.json(ran);
    CHECK(tool["command"] == "make \\xff");
    CHECK(tool["ended"] == "exited");
    CHECK(tool["stderr"] == Json{{"bytes", 0}, {"kept", 0}, {"digest", nullptr}});
    CHECK(tool["stdout"]["digest"] == sha256("out").hex());
    for (const char* member : {"tool", "room", "step", "network", "layer"})
      CHECK_FALSE(tool.contains(member));
    ran.room = "agent";
    ran.step = 0;
    ran.network = false;
    const Json setup = events::kSetup.json(ran);
    CHECK(setup["room"] == "agent");
    CHECK(setup["step"] == 0);
    CHECK(setup["network"] == false);
    CHECK(events::kIntervention.json("stop", 7, "burst", std::nullopt) ==
          Json{{"action", "stop"}, {"alert", 7}, {"breaker", "burst"}});
    const events::NetworkRequest request{"agent", "GET", "a.b", 80, "allowed", "", 1, 2};
    CHECK(events::kNetworkRequest.json(request) == Json{{"phase", "agent"},
                                                        {"method", "GET"},
                                                        {"host", "a.b"},
                                                        {"port", 80},
                                                        {"verdict", "allowed"},
                                                        {"address", ""},
                                                        {"sent", 1},
                                                        {"received", 2},
                                                        {"wall_ms", 0}});
    CHECK(events::kSetupImage.json({sha256(""), "", false, {}, true}) ==
          Json{{"inputs", sha256("").hex()},
               {"id", ""},
               {"built", false},
               {"bases", Json::object()},
               {"network", true},
               {"wall_ms", 0}});
    CHECK(events::kPatchApply.json({"agent", std::nullopt, {}, "no"})["rung"].is_null());
  }

  TEST_CASE(
      "fragments of a check are events of both streams, and a stream that is not there has none") {
    const TempDir temp = TempDir::create("fragments").value();
    ExecSpec ran;
    ran.stdout_file = temp.path() / "stdout";
    ran.stderr_file = temp.path() / "stderr";
    FragmentFinder finder;
    CHECK(fragments_of(finder, "build", ran).empty());
    REQUIRE(write_file(ran.stdout_file, "cc\nnpm error code E404\n", Durability::kLazy).ok());
    REQUIRE(write_file(ran.stderr_file, "note: module requires Go 1.99", Durability::kLazy).ok());
    const std::vector<Json> all = fragments_of(finder, "build", ran);
    REQUIRE(all.size() == 2);
    CHECK(all[0] == Json{{"check", "build"},
                         {"extractor", "missing_dependency"},
                         {"stream", "stdout"},
                         {"line", 2},
                         {"text", "npm error code E404"}});
    CHECK(all[1] == Json{{"check", "build"},
                         {"extractor", "incompatible_environment"},
                         {"stream", "stderr"},
                         {"line", 1},
                         {"text", "note: module requires Go 1.99"}});
    CHECK(events::kFragment.read(all[0]));
  }

  TEST_CASE("a payload is read with members of later versions, and without those of earlier ones") {
    Json again = events::kJudgedAgain.json(2, "full");
    again["later"] = true;
    CHECK(events::kJudgedAgain.read(again) == std::tuple{std::uint64_t{2}, std::string("full")});
    CHECK_FALSE(events::kJudgedAgain.read({{"nth", "2"}, {"why", "full"}}));
    CHECK_FALSE(events::kJudgedAgain.read({}));
    const auto told = events::kMutation.read({{"unreadable", "too deep"}});
    REQUIRE(told);
    CHECK(told->unreadable == "too deep");
    events::ServiceEnded service{"check", "db", true};
    service.error = "gone";
    const Json ended = events::kService.json(service);
    CHECK(ended == Json{{"check", "check"},
                        {"service", "db"},
                        {"ready", false},
                        {"by_itself", true},
                        {"error", "gone"}});
    const auto read = events::kService.read(ended);
    REQUIRE(read);
    CHECK(read->error == "gone");
    const events::ServiceEnded ready{"check", "db", false, std::chrono::milliseconds(5)};
    CHECK(events::kService.read(events::kService.json(ready))->ready_after == ready.ready_after);
  }
}
