#include "common/base/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/owned.h"

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

  TEST_CASE("a name may be as long as names get, and another's name beside it is no matter") {
    const TempDir dir = TempDir::create("files").value();
    const fs::path& at = dir.path();
    const std::string longest(255, 'a');
    REQUIRE(write_file(at / longest, "x").ok());
    CHECK(read_file(at / longest, 10).value() == "x");
    // What may be in the way: the name that earlier builds used, and folders and links of ours.
    REQUIRE(make_dirs(at / ".x.new/inside").ok());
    REQUIRE(make_dirs(at / ".proctor-0.new/inside").ok());
    fs::create_symlink(at / "elsewhere", at / ".proctor-1.new");
    REQUIRE(::mkfifo((at / ".proctor-2.new").c_str(), 0600) == 0);
    fs::create_hard_link(at / longest, at / ".proctor-3.new");
    REQUIRE(write_file(at / "x", "1").ok());
    REQUIRE(write_file(at / "x", "2").ok());
    CHECK(read_file(at / "x", 10).value() == "2");
    CHECK(fs::is_directory(at / ".proctor-0.new/inside"));
    CHECK(fs::is_symlink(at / ".proctor-1.new"));
    CHECK(fs::is_fifo(at / ".proctor-2.new"));
    CHECK(read_file(at / longest, 10).value() == "x");
    CHECK_FALSE(fs::exists(at / "elsewhere"));
    CHECK_FALSE(fs::exists(at / ".proctor-4.new"));
  }

  TEST_CASE("what a killed writer left is taken by the next one and two writers do not meet") {
    const TempDir dir = TempDir::create("files").value();
    const fs::path& at = dir.path();
    const fs::path first = at / ".proctor-0.new", second = at / ".proctor-1.new";
    {
      const UniqueFd left(::open(first.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      REQUIRE(::write(left.get(), "half of it", 10) == 10);
      REQUIRE(::flock(left.get(), LOCK_EX) == 0);
      REQUIRE(write_file(at / "f", "x").ok());  // its writer is at it still
      CHECK(read_file(first, 100).value() == "half of it");
    }
    REQUIRE(write_file(at / "f", "y").ok());  // and is no more
    CHECK(read_file(at / "f", 10).value() == "y");
    CHECK_FALSE(fs::exists(first));
    CHECK_FALSE(fs::exists(second));
    CHECK(is_temporary_name(first.filename().string()));
    CHECK_FALSE(is_temporary_name("f"));
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
