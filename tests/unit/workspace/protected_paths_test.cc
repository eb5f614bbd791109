#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "worker/workspace/changes.h"

namespace proctor {
namespace {

using Names = std::vector<std::string>;

TEST_SUITE("protected paths") {
  TEST_CASE("a name covers its own path alone, however it reads as a glob") {
    for (const std::string name : {"**", "*", "a?c", "[a]", "a\\b", "src/**", "src/*", "src/?.c"}) {
      CAPTURE(name);
      const ProtectedPaths paths({}, {name});
      CHECK(paths.covers(name));
      CHECK_FALSE(paths.covers(name + "/below"));
      for (const char* other : {"x", "a", "abc", "a/b", "ab", "src", "src/a.c", "src/deep/a.c"})
        CHECK_FALSE(paths.covers(other));
      CHECK(paths.reaches("src") == name.starts_with("src/"));
      CHECK_FALSE(paths.reaches("sr"));
      CHECK_FALSE(paths.reaches("src/deep"));
      CHECK_FALSE(paths.reaches("other"));
    }
  }

  TEST_CASE("names come beside globs, with the byte code of both") {
    const ProtectedPaths paths({"tests/*.py"}, {"top.py", "lib/z*.py", "lib/b.py"});
    for (const char* path :
         {"tests/a.py", "tests/a.so", "top.py", "lib/b.py", "lib/z*.py", "lib/b.abi3.so",
          "lib/z*.pyc", "lib/__pycache__/b.cpython-311.pyc", "__pycache__/top.cpython-311.pyc"}) {
      CAPTURE(path);
      CHECK(paths.covers(path));
    }
    for (const char* path : {"tests/a.txt", "a.py", "lib/zoo.py", "lib/zoo.pyc", "lib/b.txt",
                             "__pycache__/a.cpython-311.pyc"}) {
      CAPTURE(path);
      CHECK_FALSE(paths.covers(path));
    }
    for (const char* folder : {"tests", "lib", "lib/__pycache__", "__pycache__"}) {
      CAPTURE(folder);
      CHECK(paths.reaches(folder));
    }
    for (const char* folder : {"lib/deep", "li", "lib2", "lib2/__pycache__", "top.py"}) {
      CAPTURE(folder);
      CHECK_FALSE(paths.reaches(folder));
    }
    CHECK_FALSE(ProtectedPaths({}).covers("a"));
    CHECK_FALSE(ProtectedPaths({}).reaches("__pycache__"));
  }

  // Each matched with each would take minutes.
  TEST_CASE("many names are looked up") {
    constexpr int kMany = 20'000;
    Names names, others;
    for (int i = 0; i < kMany; ++i) {
      const std::string of = std::to_string(i);
      names.push_back("many/" + of + "/a file with a long name");
      others.push_back("many/" + of + "/another file with a long name");
    }
    const ProtectedPaths paths({}, names);
    const auto covered = [&](const std::string& path) { return paths.covers(path); };
    CHECK(std::ranges::count_if(names, covered) == kMany);
    CHECK(std::ranges::none_of(others, covered));
    CHECK(
        std::ranges::none_of(others, [&](const std::string& path) { return paths.reaches(path); }));
  }
}

}  // namespace
}  // namespace proctor
