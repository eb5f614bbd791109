#include "common/contract/campaign.h"
#include "coordinator/core/failures.h"

#include <doctest/doctest.h>

#include <set>

using namespace proctor;

TEST_SUITE("scheduler") {
  TEST_CASE("a wait doubles up to its bound") {
    CHECK(doubled(Millis(10), Millis(100), 1) == Millis(10));
    CHECK(doubled(Millis(10), Millis(100), 2) == Millis(20));
    CHECK(doubled(Millis(10), Millis(100), 4) == Millis(80));
    CHECK(doubled(Millis(10), Millis(100), 5) == Millis(100));
    CHECK(doubled(Millis(10), Millis(100), UINT32_MAX) == Millis(100));
    CHECK(doubled(Millis(500), Millis(100), 1) == Millis(100));
    CHECK(doubled(Millis(0), Millis(100), 9) == Millis(0));
  }

  TEST_CASE("a back-off is between half and all of the wait and follows from the seed") {
    Retries rules;
    std::set<Millis> seen;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
      const AttemptId failed{RunId(3), AttemptNo(2)};
      const Millis wait = backoff(rules, RetryClass::kInfrastructure, 2, seed, failed);
      CHECK(Millis(1'000) <= wait);
      CHECK(wait <= Millis(2'000));
      CHECK(wait == backoff(rules, RetryClass::kInfrastructure, 2, seed, failed));
      seen.insert(wait);
    }
    CHECK(100 < seen.size());
    const Millis overload = backoff(rules, RetryClass::kOverload, 1, 7, {RunId(0), AttemptNo(1)});
    CHECK(Millis(7'500) <= overload);
    CHECK(overload <= Millis(15'000));
  }
}
