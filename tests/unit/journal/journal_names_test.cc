#include "coordinator/journal/journal_rows.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace proctor;

namespace {

// Every value up to `last` has its own word, and the word leads back to it.
template <class E>
void check_words(E last, std::optional<E> (*from)(std::string_view)) {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const E value = static_cast<E>(i);
    const std::string word(journal::name_of(value));
    CAPTURE(word);
    CHECK(words.insert(word).second);
    CHECK(from(word) == value);
  }
  CHECK_FALSE(from("").has_value());
  CHECK_FALSE(from("Success").has_value());
}

}  // namespace

TEST_SUITE("journal") {
  TEST_CASE("every stored word leads back to its value") {
    check_words(AttemptState::kCancelled, journal::attempt_state);
    check_words(RunOutcome::kInvalid, journal::run_outcome);
    check_words(Termination::kInfrastructure, journal::termination);
  }

  TEST_CASE("counters that older journals do not have are read as none, and written where any is") {
    Usage u;
    CHECK(journal::metered_text(u).empty());
    u.overruns = 2;
    const std::string old = "0 0 0 0 0 0 0 0 0 0 0 0 0 2";
    CHECK(journal::metered_text(u) == old);
    Usage back;
    CHECK(journal::read_metered(old, back));
    CHECK(back == u);
    u.cached_input = 70;
    u.replayed_calls = 1;
    CHECK(journal::metered_text(u) == old + " 70 0 0 0 0 0 0 0 1");
    back = {};
    CHECK(journal::read_metered(journal::metered_text(u), back));
    CHECK(back == u);
    CHECK_FALSE(journal::read_metered(old + " 70", back));
    CHECK_FALSE(journal::read_metered(old + " 70 0 0 0 0 0 0 0 1 5", back));
    u.busy_calls = 3;
    CHECK(journal::metered_text(u) == old + " 70 0 0 0 0 0 0 0 1 0 3");
    back = {};
    CHECK(journal::read_metered(journal::metered_text(u), back));
    CHECK(back == u);
  }

  TEST_CASE("the words of the format do not change") {
    CHECK(journal::name_of(AttemptState::kReserving) == "reserving");
    CHECK(journal::name_of(AttemptState::kFinished) == "finished");
    CHECK(journal::name_of(RunOutcome::kAcceptanceError) == "acceptance_error");
    CHECK(journal::name_of(Termination::kBudgetExceeded) == "budget_exceeded");
  }
}
