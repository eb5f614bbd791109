#include "worker/sandbox/limit_watch.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("a bounded file keeps the front and counts everything") {
    const TempDir dir = TempDir::create().value();
    {
      auto f = BoundedFile::create(dir.path() / "f", 5);
      REQUIRE(f.ok());
      f->append("abc");
      f->append("defg");
      f->append("h");
      CHECK(f->total() == 8);
      CHECK(f->head() == "abcdefgh");
      CHECK(f->status().ok());
    }
    CHECK(read_file(dir.path() / "f", 100).value() == "abcde");
  }

  TEST_CASE("a bounded file does not follow a link that somebody planted") {
    const TempDir dir = TempDir::create().value();
    fs::create_symlink(dir.path() / "victim", dir.path() / "f");
    CHECK_FALSE(BoundedFile::create(dir.path() / "f", 5).ok());
    CHECK_FALSE(fs::exists(dir.path() / "victim"));
  }

  TEST_CASE("a full disk is reported and stops the writing but not the counting") {
    auto f = BoundedFile::create("/dev/full", 100);
    REQUIRE(f.ok());
    f->append("abc");
    f->append("abc");
    CHECK(f->total() == 6);
    REQUIRE_FALSE(f->status().ok());
    CHECK(f->status().error().code == Errc::kExhausted);
  }
}
