#include "common/base/text.h"

#include <doctest/doctest.h>

namespace proctor {
namespace {

TEST_SUITE("glob") {
  TEST_CASE("globs cover what contracts mean by them") {
    struct Row {
      const char* glob;
      const char* path;
      bool want;
    };
    const Row rows[] = {
        {"tests/**", "tests/a.py", true},
        {"tests/**", "tests/a/b.py", true},
        {"tests/**", "src/tests/a.py", false},
        {"**/test_*.py", "test_a.py", true},
        {"**/test_*.py", "a/b/test_a.py", true},
        {"**/test_*.py", "a/test_a.pyc", false},
        {"*.py", "a.py", true},
        {"*.py", "d/a.py", false},
        {"tests", "tests/deep/x", true},
        {"tests/", "tests/x", true},
        {"tests", "tests2/x", false},
        {"a/?.c", "a/b.c", true},
        {"a/?.c", "a/bb.c", false},
        {"a/**/z", "a/z", true},
        {"a/**/z", "a/b/c/z", true},
        {"a/**/z", "b/a/z", false},
        {"**", "anything/at/all", true},
        {"", "a", false},
        {"a*b*c", "aXbXbc", true},
        {"a*b*c", "aXbX", false},
    };
    for (const Row& row : rows) {
      CAPTURE(row.glob);
      CAPTURE(row.path);
      CHECK(glob_covers(row.glob, row.path) == row.want);
    }
  }

  TEST_CASE("a hostile glob costs little") {
    std::string glob;
    std::string path;
    for (int i = 0; i < 60; ++i) {
      glob += "**/";
      path += "a/";
    }
    CHECK_FALSE(glob_covers(glob + "b", path + "a"));
    CHECK_FALSE(glob_covers(std::string(500, '*') + "b", std::string(500, 'a')));
  }
}

}  // namespace
}  // namespace proctor
