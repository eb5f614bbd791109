// What a run broke of its contract's rules, as its verdict says it.
#include "common/base/limits.h"
#include "common/score/outcome.h"
#include "tests/unit/lifecycle/lifecycle_world.h"

using namespace proctor;
using namespace proctor::lifecycle_test;

TEST_SUITE("lifecycle") {
  TEST_CASE("violations are bounded in number and bytes and the rest is counted") {
    for (const std::size_t length : {10U, 4000U}) {
      World world(plan_of(0, 1));
      world.until<ExtractPatch>();
      world.feed(PatchExtracted{std::vector<std::string>(200'000, std::string(length, 'x')), {}});
      const Verdict& v = world.finish();
      CHECK(v.violations.size() <= 2'001);
      std::size_t bytes = 0;
      for (const std::string& violation : v.violations) bytes += violation.size();
      CHECK(bytes < (std::size_t{2} << 20));
      CHECK(v.violations.back() ==
            "and " + std::to_string(200'001 - v.violations.size()) + " more");
    }
  }

  TEST_CASE("violations name each path once and do not change the outcome") {
    World world(plan_of(0, 1));
    world.until<ExtractPatch>();
    world.feed(PatchExtracted{{"dev/fifo"}, {"docs/a.md"}});
    world.until<RestoreProtected>();
    CHECK(std::get<RestoreProtected>(world.log.back()).also ==
          std::vector<std::string>{"docs/a.md"});
    world.feed(ProtectedRestored{{"docs/a.md", "tests/t.py"}});
    const Verdict& v = world.finish();
    CHECK(v.violations == std::vector<std::string>{"refused: dev/fifo", "not writable: docs/a.md",
                                                   "protected: tests/t.py"});
    CHECK(v.outcome == RunOutcome::kSuccess);
    CHECK_MESSAGE(v.rationale.ends_with("; violations: 3 (refused: dev/fifo)"), v.rationale);
    CHECK(v.facts.violations == 3);
    CHECK(v.facts.violated == "refused: dev/fifo");
  }

  TEST_CASE("what a rationale says of violations is not what is cut of a long one") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    AgentEnded end;
    end.misfit = std::string(9'000, 'x');
    world.feed(end);
    world.until<ExtractPatch>();
    world.feed(PatchExtracted{{"dev/fifo"}, {}});
    const Verdict& v = world.finish();
    CHECK(v.rationale.size() == limits::kDetailBytes);
    CHECK(v.rationale.ends_with("; violations: 1 (refused: dev/fifo)"));
    CHECK(v.facts.patch == "refused");
  }

  TEST_CASE("what a rationale says of conflict markers is not what is cut of a long one") {
    World world(plan_of(0, 1));
    world.until<RunAgent>();
    world.feed(BudgetReached{"tokens", 1, std::string(9'000, 'x')});
    world.feed(AgentEnded{});
    world.until<ExtractPatch>();
    PatchExtracted patch;
    patch.conflicts = {std::string(9'000, 'y') + ":1"};
    world.feed(patch);
    const Verdict& v = world.finish();
    CHECK(v.rationale.size() == limits::kDetailBytes);
    CHECK(v.rationale.find("; patch: conflict_markers (yyy") != std::string::npos);
  }
}
