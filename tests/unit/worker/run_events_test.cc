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
}
