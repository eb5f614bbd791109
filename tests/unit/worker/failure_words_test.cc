#include "worker/shell/run_events.h"

#include <doctest/doctest.h>

#include "common/base/files.h"

using namespace proctor;

TEST_SUITE("worker") {
  TEST_CASE("the last lines of a failed command are told, printable and few") {
    CHECK(last_lines("") == "");
    CHECK(last_lines(" \n\n\t\n") == "");
    CHECK(last_lines("one") == "one");
    CHECK(last_lines("one\n\n  two \r\nthree\nfour\n\n") == "two | three | four");
    CHECK(last_lines("a\x1b[2Jb\n").find('\x1b') == std::string::npos);
    CHECK(last_lines(std::string(100'000, 'x')).size() < 1'000);
  }

  TEST_CASE("what a network refused is told behind what the command said") {
    const Result<TempDir> dir = TempDir::create("words");
    REQUIRE(dir.ok());
    const fs::path file = dir->path() / "stderr";
    CHECK(failure_words(file, {}) == "");
    CHECK(failure_words(file, {"a:1 (2 times)"}) == "refused by its network: a:1 (2 times)");
    REQUIRE(write_file(file, std::string(10'000, 'x') + "\nlast\n").ok());
    CHECK(
        failure_words(file, {"a:1", "b:2"}).ends_with("| last; refused by its network: a:1, b:2"));
    CHECK(failure_words(file, std::vector<std::string>(9, "a:1"))
              .ends_with("a:1, a:1, a:1, a:1, a:1 and 4 more"));
  }
}
