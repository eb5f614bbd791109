#include "worker/shell/outbox.h"

#include <doctest/doctest.h>

#include "common/base/limits.h"

namespace {

using namespace proctor;

struct Desk {
  Desk()
      : outbox(
            {[this](const wire::Message& m) {
               if (!link) return false;
               sent.push_back(m);
               return true;
             },
             [this](const fs::path&, std::uint64_t offset, std::size_t bytes, Outbox::Bytes then) {
               reads.push_back({offset, bytes, std::move(then)});
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
  template <class M>
  M take() {
    REQUIRE_FALSE(sent.empty());
    REQUIRE(std::holds_alternative<M>(sent.front()));
    M m = std::get<M>(sent.front());
    sent.erase(sent.begin());
    return m;
  }
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
}
