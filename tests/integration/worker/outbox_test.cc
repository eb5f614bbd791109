#include "worker/shell/spool.h"

#include <doctest/doctest.h>

#include "common/base/limits.h"

namespace {

using namespace proctor;

struct Desk {
  Desk()
      : outbox({[this](const wire::Message& m) {
                  if (!link) return false;
                  sent.push_back(m);
                  return true;
                },
                [this](const Spool::Entry&, std::uint64_t offset, std::size_t bytes,
                       Outbox::Bytes then) {
                  reads.push_back({offset, bytes, std::move(then)});
                },
                [this](const Spool::Entry& e, const std::string& why) {
                  damaged.push_back(e.result.attempt);
                  reason = why;
                }}) {}
  struct Read {
    std::uint64_t offset;
    std::size_t bytes;
    Outbox::Bytes then;
  };
  static Spool::Entry entry(std::uint32_t run, std::uint64_t archive_bytes) {
    Spool::Entry e;
    e.result.attempt = {RunId(run), AttemptNo(1)};
    e.result.archive_bytes = archive_bytes;
    if (archive_bytes != 0) e.archive = "/spool/archive";
    return e;
  }
  void pump() { outbox.pump(now); }
  void read() {
    REQUIRE_FALSE(reads.empty());
    Read r = std::move(reads.front());
    reads.erase(reads.begin());
    r.then(std::string(r.bytes, 'x'));
  }
  void read_fails(Errc code) {
    REQUIRE_FALSE(reads.empty());
    Read r = std::move(reads.front());
    reads.erase(reads.begin());
    r.then(Error{code, "the disk"});
  }
  // All of it leaves, and its result; the coordinator has it.
  void deliver(std::uint64_t bytes) {
    pump();
    read();
    take<wire::ArchiveChunk>();
    take<wire::ResultMessage>();
    outbox.on_chunk_ack({kOne, bytes}, now);
  }
  template <class M>
  M take() {
    REQUIRE_FALSE(sent.empty());
    REQUIRE(std::holds_alternative<M>(sent.front()));
    M m = std::get<M>(sent.front());
    sent.erase(sent.begin());
    return m;
  }
  static constexpr AttemptId kOne{RunId(1), AttemptNo(1)};
  std::vector<AttemptId> damaged;
  std::string reason;
  bool link = true;
  std::vector<wire::Message> sent;
  std::vector<Read> reads;
  Instant now{Millis(1'000'000)};
  Outbox outbox;
};

constexpr std::uint64_t kBig = 2 * limits::kChunkBytes + 10;
const AttemptId kId{RunId(1), AttemptNo(1)};

}  // namespace

TEST_SUITE("outbox") {
  TEST_CASE("a small archive travels with its result right behind it") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    desk.pump();
    desk.read();
    CHECK(desk.take<wire::ArchiveChunk>().total == 100);
    CHECK(desk.take<wire::ResultMessage>().attempt == kId);
    desk.pump();  // nothing is said twice without reason
    CHECK(desk.sent.empty());
    CHECK(desk.reads.empty());
    CHECK(desk.outbox.unacked() == std::vector<AttemptId>{kId});
    CHECK(desk.outbox.on_acked(kId));
    CHECK_FALSE(desk.outbox.on_acked(kId));
    CHECK(desk.outbox.empty());
  }

  TEST_CASE("a large archive waits for each acknowledgement and the result comes last") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, kBig));
    desk.pump();
    std::uint64_t offset = 0;
    for (int i = 0; i < 3; ++i) {
      desk.read();
      const auto chunk = desk.take<wire::ArchiveChunk>();
      CHECK(chunk.offset == offset);
      CHECK(desk.sent.empty());
      offset += chunk.bytes.size();
      desk.outbox.on_chunk_ack({kId, offset}, desk.now);
    }
    CHECK(offset == kBig);
    CHECK(desk.take<wire::ResultMessage>().attempt == kId);
  }

  TEST_CASE("a coordinator that has the beginning already is not sent it again") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, kBig));
    desk.pump();
    desk.read();
    desk.take<wire::ArchiveChunk>();
    desk.outbox.on_chunk_ack({kId, kBig - 10}, desk.now);
    desk.read();
    const auto last = desk.take<wire::ArchiveChunk>();
    CHECK(last.offset == kBig - 10);
    CHECK(last.bytes.size() == 10);
  }

  TEST_CASE("a resend starts again what stalled and leaves alone what moves") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, kBig));
    desk.pump();
    desk.read();
    desk.take<wire::ArchiveChunk>();
    desk.outbox.on_resend(kId, 0, desk.now + Millis(1000));
    desk.pump();
    CHECK(desk.reads.empty());
    desk.outbox.on_resend(kId, 0, desk.now + Millis(6000));
    desk.pump();
    REQUIRE(desk.reads.size() == 1);
    CHECK(desk.reads[0].offset == 0);
  }

  TEST_CASE("a resend written before the result could arrive asks for nothing") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 0));
    desk.outbox.on_sync(7);
    desk.pump();
    CHECK(desk.take<wire::ResultMessage>().attempt == kId);
    desk.outbox.on_resend(kId, 7, desk.now);  // the answer to the Sync before it
    desk.pump();
    CHECK(desk.sent.empty());
    desk.outbox.on_sync(8);
    desk.outbox.on_resend(kId, 8,
                          desk.now);  // written by somebody who had read the result, or lost it
    desk.pump();
    CHECK(desk.take<wire::ResultMessage>().attempt == kId);
    desk.outbox.on_resend(kId, 0,
                          desk.now);  // by a coordinator that does not say which Sync it answers
    desk.pump();
    CHECK(desk.take<wire::ResultMessage>().attempt == kId);
  }

  TEST_CASE("a read that comes back after a restart is dropped") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    desk.pump();
    desk.outbox.on_link_up();
    desk.pump();
    REQUIRE(desk.reads.size() == 2);
    desk.read();
    CHECK(desk.sent.empty());
    desk.read();
    desk.take<wire::ArchiveChunk>();
    desk.take<wire::ResultMessage>();
  }

  TEST_CASE("without a link nothing is lost and everything goes out when it is back") {
    Desk desk;
    desk.link = false;
    desk.outbox.add(Desk::entry(1, 100));
    desk.outbox.add(Desk::entry(2, 0));
    desk.pump();
    desk.read();
    CHECK(desk.sent.empty());
    CHECK(desk.outbox.unacked().size() == 2);
    desk.link = true;
    desk.outbox.on_link_up();
    desk.pump();
    desk.take<wire::ResultMessage>();
    desk.read();
    desk.take<wire::ArchiveChunk>();
    desk.take<wire::ResultMessage>();
    CHECK(desk.sent.empty());
  }

  TEST_CASE("many archives travel a few at a time") {
    Desk desk;
    for (std::uint32_t run = 0; run < 100; ++run) desk.outbox.add(Desk::entry(run, kBig));
    desk.pump();
    CHECK(desk.reads.size() == 8);
  }

  TEST_CASE("an archive that is damaged here is given up and its result goes without it") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    desk.pump();
    desk.read_fails(Errc::kCorrupt);
    REQUIRE(desk.damaged == std::vector<AttemptId>{kId});
    desk.outbox.on_resend(kId, 0, desk.now + Millis(60'000));
    desk.outbox.on_link_up();
    desk.pump();
    CHECK(desk.reads.empty());  // another result is being written
    CHECK(desk.outbox.holds(kId));
    desk.outbox.replace(kId, Desk::entry(1, 0));
    desk.pump();
    CHECK(desk.take<wire::ResultMessage>().archive_bytes == 0);
    CHECK(desk.damaged.size() == 1);
  }

  TEST_CASE("where no other result can be written the coordinator's next word tries again") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    desk.pump();
    desk.read_fails(Errc::kCorrupt);
    desk.outbox.replace(kId, Error{Errc::kExhausted, "disk full"});
    desk.pump();
    CHECK(desk.reads.empty());
    desk.outbox.on_resend(kId, 0, desk.now + Millis(2'000));
    desk.pump();
    desk.read_fails(Errc::kCorrupt);
    CHECK(desk.damaged.size() == 2);
  }

  TEST_CASE("an archive that cannot be read now is tried again, and not for ever") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    int tries = 0;
    for (; desk.damaged.empty() && tries < 1000; ++tries) {
      desk.pump();
      desk.read_fails(Errc::kUnavailable);
      desk.outbox.on_resend(kId, 0, desk.now + Millis(2'000) * tries);
    }
    CHECK(10 < tries);
    CHECK(tries < 100);
  }

  TEST_CASE("an archive that arrives as another is sent again a few times and then given up") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    int times = 0;
    for (; desk.damaged.empty() && times < 100; ++times) {
      desk.deliver(100);
      desk.outbox.on_chunk_ack({kId, 0}, desk.now);  // "it is not what was promised"
    }
    CHECK(times == 3);
    CHECK(desk.reason.find("3 times") != std::string::npos);
    desk.pump();
    CHECK(desk.reads.empty());
  }

  TEST_CASE("an archive that has not come is no archive that came as another") {
    Desk desk;
    desk.outbox.add(Desk::entry(1, 100));
    for (int i = 0; i < 50; ++i) {
      desk.pump();
      desk.read();
      desk.take<wire::ArchiveChunk>();
      desk.take<wire::ResultMessage>();
      desk.outbox.on_chunk_ack({kId, 0}, desk.now);  // its disk was full, say
      desk.pump();
      CHECK(desk.reads.empty());  // not at once
      desk.outbox.on_resend(kId, 0, desk.now);
    }
    CHECK(desk.damaged.empty());
    for (int i = 0; i < 10; ++i) {  // another coordinator each time
      desk.outbox.on_link_up();
      desk.outbox.on_resend(kId, 0, desk.now);
      desk.deliver(100);
      desk.outbox.on_chunk_ack({kId, 0}, desk.now);
    }
    CHECK(desk.damaged.empty());
  }
}
