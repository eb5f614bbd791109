#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdlib>

#include "tests/unit/ledger/auditor.h"

using namespace proctor;

namespace {

std::vector<ScopeSpec> envelopes(std::uint64_t seed) {
  const auto cap = [&](std::uint64_t n) {
    return MicroUsd::from_micros(static_cast<std::int64_t>(n));
  };
  return {{"global", seed % 5 == 0 ? kLedgerMax : cap(2000 + seed % 9000)},
          {"task:a", cap(900)},
          {"task:b", cap(1 + seed % 2000)},
          {"task:c", kLedgerMax}};
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("the auditor agrees with every answer and every balance") {
    // The same cases at every run; RC_PARAMS in the environment asks for others.
    REQUIRE(::setenv("RC_PARAMS", "seed=20260307", 0) == 0);  // NOLINT(concurrency-mt-unsafe)
    std::map<std::string, int> seen;
    CHECK(rc::check("ledger conserves money", [&](std::uint64_t seed) {
      const auto scopes = envelopes(seed);
      Ledger ledger(scopes);
      audit::Auditor auditor(scopes);
      audit::OpSource source(seed, 4, 1 + static_cast<std::int64_t>(seed % 400));
      for (int i = 0; i < 300; ++i) {
        const LedgerOp op = source.next();
        const std::string wrong = auditor.saw(op, ledger.apply(op));
        RC_ASSERT(wrong == "");
        for (std::uint32_t s = 0; s < scopes.size(); ++s) {
          RC_ASSERT(auditor.compare(s, ledger.balance(ScopeId(s))) == "");
        }
      }
      for (const auto& [what, count] : auditor.seen) seen[what] += count;
    }));
    for (const char* what : {"granted",
                             "denied",
                             "settled",
                             "voided",
                             "forgotten",
                             "overrun",
                             "reserve replayed",
                             "settle replayed",
                             "void replayed",
                             "other contents",
                             "settle with another amount",
                             "settle after void",
                             "void after settle",
                             "settle of a denial",
                             "void of a denial",
                             "settle of nothing",
                             "void of nothing",
                             "invalid reserve",
                             "invalid settle",
                             "forget of a pending one"}) {
      CAPTURE(what);
      CHECK(0 < seen[what]);
    }
  }
}
