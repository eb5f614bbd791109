#include "worker/shell/spool.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

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

  TEST_CASE("a spool is its worker's alone") {
    Place place;
    const mode_t before = ::umask(0);
    Spool spool = place.open();
    REQUIRE(spool.put("c1", result(9, 7), place.archive()).ok());
    ::umask(before);
    std::size_t seen = 0;
    for (const auto& e : fs::recursive_directory_iterator(place.temp.path())) {
      struct stat st {};
      REQUIRE(::lstat(e.path().c_str(), &st) == 0);
      CAPTURE(e.path());
      CHECK((st.st_mode & 0777U) == (e.is_directory() ? 0700U : 0600U));
      ++seen;
    }
    CHECK(seen == 4);
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
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].result.attempt.run == RunId(2));
    CHECK(entries[0].result.outcome == RunOutcome::kFailure);
    CHECK(entries[1].result.attempt.run == RunId(3));
    CHECK(entries[1].result.outcome == RunOutcome::kInvalid);
    CHECK(fs::exists(place.temp.path() / "spool/c1/1.1.result.corrupt"));
    CHECK(fs::exists(place.temp.path() / "spool/c1/4.1.result.corrupt"));
    CHECK(fs::exists(place.temp.path() / "spool/c1/3.1.tar.zst.corrupt"));
    CHECK(spool.load("c1").value().size() == 2);
  }

  TEST_CASE("one changed bit of an archive costs its evidence and nothing else") {
    Place place;
    Spool spool = place.open();
    wire::ResultMessage first = result(3, 7);
    first.usage.agent_ms = 4711;
    first.report = sha256("report");
    REQUIRE(spool.put("c1", first, place.archive()).ok());
    const fs::path archive = place.temp.path() / "spool/c1/3.1.tar.zst";
    const auto whole = spool.load("c1").value();
    REQUIRE(whole.size() == 1);
    CHECK(Spool::read_part(whole[0], 0, 7).value() == "archive");
    CHECK(Spool::read_part(whole[0], 3, 4).value() == "hive");
    REQUIRE(write_file(archive, "archivd").ok());
    CHECK(Spool::read_part(whole[0], 0, 7).error().code == Errc::kCorrupt);
    CHECK(Spool::read_part(whole[0], 0, 1).error().code == Errc::kCorrupt);
    for (int life = 0; life < 2; ++life) {
      const auto entries = place.open().load("c1").value();
      REQUIRE(entries.size() == 1);
      const wire::ResultMessage& r = entries[0].result;
      CHECK(r.outcome == RunOutcome::kInvalid);
      CHECK(r.termination == Termination::kInfrastructure);
      CHECK(r.infrastructure);
      CHECK(r.usage.agent_ms == 4711);  // charged as metered
      CHECK(r.report == Digest());
      CHECK(r.archive_bytes == 0);
      CHECK(entries[0].archive.empty());
      CHECK(r.rationale.find("damaged") != std::string::npos);
    }
    CHECK(read_file(archive.string() + ".corrupt", 100).value() == "archivd");
    CHECK(fs::exists(place.temp.path() / "spool/c1/3.1.result.corrupt"));
    REQUIRE(spool.drop("c1", first.attempt).ok());
    CHECK(spool.load("c1").value().empty());
    CHECK(fs::exists(archive.string() + ".corrupt"));  // for a person
  }

  TEST_CASE("an archive that is gone costs its evidence too") {
    Place place;
    Spool spool = place.open();
    const auto entry = spool.put("c1", result(3, 7), place.archive()).value();
    REQUIRE(fs::remove(entry.archive));
    CHECK(Spool::read_part(entry, 0, 7).error().code == Errc::kCorrupt);
    CHECK(Spool::read_part(entry, 2, 3).error().code == Errc::kCorrupt);
    const auto entries = spool.load("c1").value();
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].result.infrastructure);
  }

  TEST_CASE("no changed bit of a result is believed, and the form of older builds is read") {
    Place place;
    Spool spool = place.open();
    REQUIRE(spool.put("c1", result(1, 0), {}).ok());
    const fs::path file = place.temp.path() / "spool/c1/1.1.result";
    const std::string good = read_file(file, 10'000).value();
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      REQUIRE(write_file(file, bad, Durability::kLazy).ok());
      CAPTURE(bit);
      CHECK(spool.load("c1").value().empty());
    }
    REQUIRE(write_file(file, wire::encode(result(1, 0))).ok());
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
