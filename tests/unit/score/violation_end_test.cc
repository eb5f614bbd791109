// The words by which a rationale says that constraints were broken.
#include "common/score/outcome.h"

#include <doctest/doctest.h>

#include <string>

using namespace proctor;

TEST_SUITE("score") {
  TEST_CASE("what is written about broken constraints is read again") {
    CHECK(violation_words(0, "").empty());
    CHECK(violation_words(3, "protected: tests/a.py") == "; violations: 3 (protected: tests/a.py)");
    CHECK(violations_in("exit 0" + violation_words(3, "protected: a (copy).py")) ==
          ViolationEnd{3, "protected: a (copy).py"});
    CHECK(violations_in("exit 0; patch: whitespace") == ViolationEnd{});
    CHECK(violations_in("") == ViolationEnd{});
    CHECK(violation_words(1, std::string(9'000, 'x')).size() < 300);
  }

  TEST_CASE("text of an agent that looks like these words counts against it and never for it") {
    const std::string path = "x; violations: 0 (nothing)";
    CHECK(violations_in("; violations: 2 (not writable: " + path + ")").count == 2);
    CHECK(violations_in("exit 1 " + path + violation_words(5, "refused: b")).count == 5);
    CHECK(violations_in("; violations: 0 (none)").count == 1);
    CHECK(violations_in("; violations: many (none)").count == 0);
    CHECK(violations_in("; violations: 99999999999999999999999 (none)").count == 0);
  }
}
