#include "worker/workspace/cache.h"

#include <doctest/doctest.h>

using namespace proctor;
using Names = std::vector<std::string>;

TEST_SUITE("workspace") {
  TEST_CASE("the least recently used goes first, and no more than must") {
    const std::vector<CachedItem> items = {
        {"new", 10, 300, false}, {"old", 10, 100, false}, {"middle", 10, 200, false}};
    CHECK(to_evict(items, 30).empty());
    CHECK(to_evict(items, 29) == Names{"old"});
    CHECK(to_evict(items, 20) == Names{"old"});
    CHECK(to_evict(items, 19) == Names{"old", "middle"});
    CHECK(to_evict(items, 0) == Names{"old", "middle", "new"});
    CHECK(to_evict({}, 0).empty());
  }

  TEST_CASE("what is in use stays, whatever that leaves") {
    CHECK(to_evict({{"a", 10, 1, true}, {"b", 10, 2, false}, {"c", 10, 3, true}}, 0) == Names{"b"});
    CHECK(to_evict({{"a", 10, 1, false}, {"b", 10, 1, false}}, 10) == Names{"a"});  // by name then
  }
}
