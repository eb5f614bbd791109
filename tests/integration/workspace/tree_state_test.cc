// What a tree looks like from outside: what is seen of it, and what hostile trees do not do.
#include "worker/workspace/tree_state.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <set>

#include "common/base/files.h"

using namespace proctor;

TEST_SUITE("tree state") {
  TEST_CASE("every change of names, contents, modes and kinds is another state, and only that") {
    const TempDir dir = TempDir::create("state").value();
    const fs::path tree = dir.path() / "tree", file = tree / "a/b";
    REQUIRE(make_dirs(tree / "a").ok());
    std::set<std::string> seen;
    const auto is_new = [&] {
      const Result<TreeState> first = state_of_tree(tree), again = state_of_tree(tree);
      REQUIRE(first.ok());
      CHECK(first->digest == again->digest);
      return seen.insert(first->digest).second;
    };
    CHECK(is_new());
    REQUIRE(write_file(file, "one", Durability::kLazy).ok());
    CHECK(is_new());
    CHECK_FALSE(is_new());
    // The same size, at another time.
    REQUIRE(write_file(file, "two", Durability::kLazy).ok());
    const std::array<timespec, 2> later{{{2'000'000'000, 0}, {2'000'000'000, 0}}};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), later.data(), 0) == 0);
    CHECK(is_new());
    fs::permissions(file, fs::perms::owner_all);
    CHECK(is_new());
    fs::rename(file, tree / "a/c");
    CHECK(is_new());
    fs::create_symlink("/etc", tree / "link");
    CHECK(is_new());
    REQUIRE(::mkfifo((tree / "fifo").c_str(), 0600) == 0);  // nobody opens it
    CHECK(is_new());
    const TreeState last = state_of_tree(tree).value();
    CHECK(last.files == 4);  // a, a/c, link, fifo: nothing below a link
    CHECK(last.bytes == 3);
    fs::remove_all(tree / "a");
    CHECK(is_new());
  }

  TEST_CASE("a folder that is a link or not there, and a tree without end, are errors") {
    const TempDir dir = TempDir::create("state").value();
    CHECK_FALSE(state_of_tree(dir.path() / "none").ok());
    fs::create_directory_symlink("/", dir.path() / "root");
    CHECK_FALSE(state_of_tree(dir.path() / "root").ok());
    fs::path deep = dir.path() / "deep";
    for (int i = 0; i < 300; ++i) deep /= "d";
    REQUIRE(make_dirs(deep).ok());
    const Result<TreeState> state = state_of_tree(dir.path() / "deep");
    REQUIRE_FALSE(state.ok());
    CHECK(state.error().code == Errc::kExhausted);
  }
}
