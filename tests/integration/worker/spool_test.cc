#include "worker/shell/spool.h"

#include <doctest/doctest.h>

#include "common/wire/codec.h"

namespace {

using namespace proctor;

wire::ResultMessage result(std::uint32_t run, std::uint64_t archive_bytes) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = {RunId(run), AttemptNo(1)};
  r.outcome = RunOutcome::kFailure;
  r.archive_bytes = archive_bytes;
  if (archive_bytes != 0) r.archive = sha256("archive");
  return r;
}

struct Place {
  fs::path archive() const {
    const fs::path file = temp.path() / "made.tar.zst";
    REQUIRE(write_file(file, "archive").ok());
    return file;
  }
  Spool open() const { return Spool::open(temp.path() / "spool").value(); }
  TempDir temp = TempDir::create("proctor-spool").value();
};

}  // namespace

TEST_SUITE("spool") {
  TEST_CASE("what was put is there for the next life and gone once dropped") {
    Place place;
    {
      Spool spool = place.open();
      REQUIRE(spool.put("c1", result(9, 7), place.archive()).ok());
      REQUIRE(spool.put("c1", result(3, 0), {}).ok());
      REQUIRE(spool.put("c2", result(9, 0), {}).ok());
    }
    Spool spool = place.open();
    const auto entries = spool.load("c1").value();
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].result.attempt.run == RunId(3));
    CHECK(entries[0].archive.empty());
    CHECK(wire::encode(entries[1].result) == wire::encode(result(9, 7)));
    CHECK(read_file(entries[1].archive, 100).value() == "archive");
    CHECK(spool.drop("c1", entries[1].result.attempt).ok());
    CHECK(spool.drop("c1", entries[1].result.attempt).ok());
    CHECK(spool.load("c1").value().size() == 1);
    CHECK(spool.load("c2").value().size() == 1);
    CHECK(spool.load("never").value().empty());
  }

  TEST_CASE("an attempt keeps its first result") {
    Place place;
    Spool spool = place.open();
    REQUIRE(spool.put("c1", result(9, 7), place.archive()).ok());
    wire::ResultMessage other = result(9, 0);
    other.outcome = RunOutcome::kSuccess;
    const auto kept = spool.put("c1", other, {});
    REQUIRE(kept.ok());
    CHECK(kept->result.outcome == RunOutcome::kFailure);
  }

  TEST_CASE("what a killed life left half-built is never announced") {
    Place place;
    {
      Spool spool = place.open();
      REQUIRE(spool.put("c1", result(1, 0), {}).ok());
    }
    const fs::path half = place.temp.path() / "spool/c1/.5.1.result.x7Ab2c";
    const fs::path unannounced = place.temp.path() / "spool/c1/6.1.tar.zst";
    REQUIRE(write_file(half, wire::encode(result(5, 0))).ok());
    REQUIRE(write_file(unannounced, "archive").ok());
    CHECK(place.open().load("c1").value().size() == 1);
    CHECK_FALSE(fs::exists(half));
    CHECK_FALSE(fs::exists(unannounced));
  }

  TEST_CASE("an entry that does not read back is set aside and hinders no other") {
    Place place;
    Spool spool = place.open();
    REQUIRE(spool.put("c1", result(1, 0), {}).ok());
    REQUIRE(spool.put("c1", result(2, 0), {}).ok());
    REQUIRE(spool.put("c1", result(3, 7), place.archive()).ok());
    REQUIRE(write_file(place.temp.path() / "spool/c1/1.1.result", "\xff\xff").ok());
    fs::copy_file(place.temp.path() / "spool/c1/2.1.result",
                  place.temp.path() / "spool/c1/4.1.result");  // another attempt's
    REQUIRE(write_file(place.temp.path() / "spool/c1/3.1.tar.zst", "cut").ok());
    const auto entries = spool.load("c1").value();
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].result.attempt.run == RunId(2));
    CHECK(fs::exists(place.temp.path() / "spool/c1/1.1.result.corrupt"));
    CHECK(fs::exists(place.temp.path() / "spool/c1/4.1.result.corrupt"));
    CHECK(fs::exists(place.temp.path() / "spool/c1/3.1.tar.zst.corrupt"));
    CHECK(spool.load("c1").value().size() == 1);
  }

  TEST_CASE("a campaign's id is a plain name or nothing is written") {
    Place place;
    Spool spool = place.open();
    for (const char* name : {"", "..", ".hidden", "a/b", "../up", "/abs"}) {
      CAPTURE(name);
      CHECK_FALSE(spool.put(name, result(1, 0), {}).ok());
      CHECK_FALSE(spool.load(name).ok());
      CHECK_FALSE(spool.drop(name, result(1, 0).attempt).ok());
    }
    CHECK(fs::is_empty(place.temp.path() / "spool"));
  }
}
