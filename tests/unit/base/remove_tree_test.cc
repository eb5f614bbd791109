// remove_tree against what strangers leave.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/folder_tree.h"

using namespace proctor;

namespace {

void check_chain(int depth) {
  const TempDir dir = TempDir::create("deep").value();
  const fs::path top = dir.path() / "top";
  REQUIRE(::mkdir(top.c_str(), 0755) == 0);
  const fs::path before = fs::current_path();
  REQUIRE(::chdir(top.c_str()) == 0);
  for (int i = 0; i < depth; ++i) {
    REQUIRE(::mkdir("d", 0755) == 0);
    REQUIRE(::chdir("d") == 0);
  }
  REQUIRE(::chdir(before.c_str()) == 0);
  const Status gone = remove_tree(top);
  CHECK_MESSAGE(gone.ok(), (gone.ok() ? "" : gone.error().detail));
  CHECK_FALSE(fs::exists(top));
}

}  // namespace

TEST_SUITE("remove tree") {
  TEST_CASE("a chain of folders longer than any path is removed") {
    check_chain(2'500);
  }

  // A minute on a busy disk.
  TEST_CASE("a chain of folders deeper than any stack is removed" * doctest::test_suite("full")) {
    check_chain(20'000);
  }

  TEST_CASE("links are removed and not followed and closed folders are opened") {
    const TempDir dir = TempDir::create("links").value();
    REQUIRE(make_dirs(dir.path() / "outside").ok());
    REQUIRE(write_file(dir.path() / "outside/kept", "x").ok());
    const fs::path top = dir.path() / "top";
    REQUIRE(make_dirs(top / "a/b/c").ok());
    REQUIRE(write_file(top / "a/b/file", "x").ok());
    fs::create_directory_symlink(dir.path() / "outside", top / "a/link");
    fs::create_symlink("/nowhere", top / "a/b/dangling");
    REQUIRE(::mkfifo((top / "a/fifo").c_str(), 0600) == 0);
    fs::permissions(top / "a/b", fs::perms::none);
    fs::permissions(top / "a", fs::perms::owner_read);
    CHECK(remove_tree(top).ok());
    CHECK_FALSE(fs::exists(top));
    CHECK(fs::exists(dir.path() / "outside/kept"));
    // A link itself, a file, and nothing.
    fs::create_directory_symlink(dir.path() / "outside", top);
    CHECK(remove_tree(top).ok());
    CHECK(fs::exists(dir.path() / "outside/kept"));
    REQUIRE(write_file(top, "x").ok());
    CHECK(remove_tree(top).ok());
    CHECK(remove_tree(top).ok());
  }

  TEST_CASE("as much is removed as there is room for and the rest is told of") {
    const TempDir dir = TempDir::create("part").value();
    const fs::path top = dir.path() / "top";
    constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
    const auto fill = [&] {
      for (int i = 0; i < 50; ++i) {
        const fs::path folder = top / std::to_string(i);
        REQUIRE(make_dirs(folder).ok());
        REQUIRE(write_file(folder / "file", "x", Durability::kLazy).ok());
      }
    };
    const auto left = [&] {
      int out = 0;
      for (auto it = fs::recursive_directory_iterator(top); it != fs::end(it); ++it) ++out;
      return out;
    };
    fill();
    const auto part = remove_tree_within(top, {70, kMuch});
    REQUIRE(part.ok());
    CHECK_FALSE(*part);
    CHECK(left() < 100);
    CHECK(30 <= left());
    const auto rest = remove_tree_within(top, {100, kMuch});
    REQUIRE(rest.ok());
    CHECK(*rest);
    CHECK_FALSE(fs::exists(top));
    // A file with more on disk than there is room for stays.
    REQUIRE(make_dirs(top).ok());
    REQUIRE(write_file(top / "large", std::string(1 << 20, 'x')).ok());
    const auto large = remove_tree_within(top, {100, 1 << 16});
    REQUIRE(large.ok());
    CHECK_FALSE(*large);
    CHECK(fs::exists(top / "large"));
    CHECK(*remove_tree_within(top, {100, kMuch}));
    // What is not there takes no room.
    CHECK(*remove_tree_within(top, {0, 0}));
  }
}
