#include "common/base/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace proctor;

namespace {

unsigned mode_of(const fs::path& path) {
  struct stat st {};
  REQUIRE(::lstat(path.c_str(), &st) == 0);
  return st.st_mode & 07777U;
}

}  // namespace

TEST_SUITE("files") {
  TEST_CASE("files and folders are their owner's unless it is said otherwise, whatever the umask") {
    for (const mode_t mask : {0U, 022U, 077U}) {
      CAPTURE(mask);
      const TempDir dir = TempDir::create("files").value();
      const mode_t before = ::umask(mask);
      const fs::path& at = dir.path();
      REQUIRE(write_file(at / "ours", "x").ok());
      REQUIRE(write_file(at / "theirs", "x", Durability::kLazy, kOpenFile).ok());
      REQUIRE(write_file(at / "theirs", "y", Durability::kLazy, kOpenFile).ok());
      REQUIRE(make_private_dirs(at / "a/b/").ok());
      ::umask(before);
      CHECK(mode_of(at / "ours") == 0600U);
      CHECK(mode_of(at / "theirs") == 0644U);
      CHECK(mode_of(at / "a") == 0700U);
      CHECK(mode_of(at / "a/b") == 0700U);
    }
  }

  TEST_CASE("a file that was open is closed by who writes it anew") {
    const TempDir dir = TempDir::create("files").value();
    REQUIRE(write_file(dir.path() / "f", "x", Durability::kLazy, kOpenFile).ok());
    REQUIRE(write_file(dir.path() / "f", "y").ok());
    CHECK(mode_of(dir.path() / "f") == 0600U);
  }

  TEST_CASE("private folders leave alone what is there and name what is in the way") {
    const TempDir dir = TempDir::create("files").value();
    REQUIRE(make_dirs(dir.path() / "open").ok());
    REQUIRE(::chmod((dir.path() / "open").c_str(), 0755) == 0);
    REQUIRE(make_private_dirs(dir.path() / "open/closed").ok());
    CHECK(mode_of(dir.path() / "open") == 0755U);
    CHECK(mode_of(dir.path() / "open/closed") == 0700U);
    fs::create_directory_symlink("open", dir.path() / "link");
    CHECK(make_private_dirs(dir.path() / "link/more").ok());
    CHECK(mode_of(dir.path() / "open/more") == 0700U);
    REQUIRE(write_file(dir.path() / "file", "x").ok());
    const Status refused = make_private_dirs(dir.path() / "file/under");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().detail.find("file") != std::string::npos);
    CHECK_FALSE(make_private_dirs(dir.path() / "file").ok());
  }
}
