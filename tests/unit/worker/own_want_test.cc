#include "worker/shell/host_room.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "worker/shell/spool.h"

using namespace proctor;
using namespace std::chrono_literals;

namespace {

// While it is there this process can open nothing.
struct NoDescriptors {
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  rlimit before{};
};

wire::ResultMessage result(std::uint32_t run = 7) {
  wire::ResultMessage r;
  r.epoch = Epoch(2);
  r.attempt = {RunId(run), AttemptNo(1)};
  r.outcome = RunOutcome::kSuccess;
  r.archive = sha256("archive");
  r.archive_bytes = 7;
  return r;
}

}  // namespace

TEST_SUITE("own want") {
  TEST_CASE("a result whose worker has no descriptors left waits for them, and is not lost") {
    const TempDir temp = TempDir::create("proctor-want").value();
    Spool spool = Spool::open(temp.path() / "spool").value();
    const fs::path archive = temp.path() / "made.tar.zst";
    REQUIRE(write_file(archive, "archive").ok());
    auto none = std::make_optional<NoDescriptors>();
    std::size_t pauses = 0;
    const Patience patience{[&](std::chrono::milliseconds) {
      if (++pauses == 3) none.reset();
      return true;
    }};
    const Result<Spool::Entry> kept = when_there_is_room<Spool::Entry>(
        "the result", patience, [&] { return spool.put("c1", result(), archive); });
    none.reset();
    REQUIRE_MESSAGE(kept.ok(), (kept.ok() ? "" : kept.error().detail));
    CHECK(pauses == 3);
    CHECK(read_file(kept->archive, 100).value() == "archive");
    CHECK(spool.load("c1").value().size() == 1);
  }

  TEST_CASE("a result that was half kept when there was no room is kept whole by the next try") {
    const TempDir temp = TempDir::create("proctor-want").value();
    Spool spool = Spool::open(temp.path() / "spool").value();
    const fs::path archive = temp.path() / "made.tar.zst";
    REQUIRE(write_file(archive, "archive").ok());
    REQUIRE(spool.put("c1", result(8), archive).ok());  // makes the campaign's folder
    REQUIRE(write_file(archive, "archive").ok());
    {
      const NoDescriptors none;  // a rename needs none, a file does
      CHECK_FALSE(spool.put("c1", result(), archive).ok());
    }
    const Result<Spool::Entry> kept = spool.put("c1", result(), archive);
    REQUIRE_MESSAGE(kept.ok(), (kept.ok() ? "" : kept.error().detail));
    CHECK(read_file(kept->archive, 100).value() == "archive");
  }

  TEST_CASE("what is no want of ours is not waited for, and nothing for ever that may be") {
    std::size_t tries = 0, pauses = 0;
    const auto end_of = [&](Errc code, Patience patience) {
      tries = pauses = 0;
      patience.pause = [&](std::chrono::milliseconds) { return ++pauses < 1'000; };
      const Status end = when_there_is_room<Unit>("it", patience, [&]() -> Status {
        ++tries;
        return Error{code, "no"};
      });
      CHECK(end.error().code == code);
    };
    end_of(Errc::kInvalid, {});
    CHECK(tries == 1);
    end_of(Errc::kCorrupt, {});
    CHECK(tries == 1);
    end_of(Errc::kUnavailable, {});
    CHECK(1 < tries);
    CHECK(tries < 100);
    end_of(Errc::kExhausted, {});  // for as long as anybody waits
    CHECK(pauses == 1'000);
    end_of(Errc::kExhausted, {.pause = {}, .want_most = 60s});
    CHECK(1 < tries);
    CHECK(tries < 100);
  }

  TEST_CASE("who is told to stop waits a little, for what is finished anyway, and no more") {
    std::stop_source stop;
    stop.request_stop();
    const Pause pause = until_stopped(stop.get_token());
    CHECK(pause(1ms));
    CHECK_FALSE(pause(60s));
  }

  TEST_CASE("a worker says at start that its slots cannot have their descriptors") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit low{64, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    if (96 <= before.rlim_max) CHECK(enough_descriptors(1).ok());
    rlimit raised{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &raised) == 0);
    CHECK(raised.rlim_cur == before.rlim_max);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    const Status never = enough_descriptors(1U << 31);
    REQUIRE_FALSE(never.ok());
    CHECK(never.error().detail.find("ulimit -n") != std::string::npos);
  }
}
