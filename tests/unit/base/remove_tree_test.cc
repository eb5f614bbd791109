// remove_tree against what strangers leave.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"

using namespace proctor;

TEST_SUITE("remove tree") {
  TEST_CASE("a chain of folders longer than any path is removed") {
    const TempDir dir = TempDir::create("deep").value();
    const fs::path top = dir.path() / "top";
    REQUIRE(::mkdir(top.c_str(), 0755) == 0);
    constexpr int kDepth = 20'000;
    const fs::path before = fs::current_path();
    REQUIRE(::chdir(top.c_str()) == 0);
    for (int i = 0; i < kDepth; ++i) {
      REQUIRE(::mkdir("d", 0755) == 0);
      REQUIRE(::chdir("d") == 0);
    }
    REQUIRE(::chdir(before.c_str()) == 0);
    const Status gone = remove_tree(top);
    CHECK_MESSAGE(gone.ok(), (gone.ok() ? "" : gone.error().detail));
    CHECK_FALSE(fs::exists(top));
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
}
