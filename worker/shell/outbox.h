#pragma once
// Outbox: brings spooled results to the coordinator and remembers which it has not acknowledged.
// A result follows its archive: small archives travel as one chunk with the result right behind,
// larger ones chunk by chunk, each waiting for its ChunkAck.  Losing anything is healed by the next
// Sync: the coordinator answers with resend or acked.  Disk reads happen elsewhere (Io::read).
// An archive that is damaged here, or that the coordinator finds other than promised time and
// again, is given up: Io::damaged puts a result without evidence in its place (replace()). Thread:
// the loop's, all of it.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/messages.h"
#include "worker/shell/spool.h"

namespace proctor {

class Outbox {
 public:
  using Bytes = std::function<void(Result<std::string>)>;
  struct Io {
    std::function<bool(const wire::Message&)> send;
    // Calls back on the loop thread, never before it returns.
    // kCorrupt: the archive is not what its result names, and never will be again.
    std::function<void(const Spool::Entry&, std::uint64_t offset, std::size_t bytes, Bytes)> read;
    // Sets the entry aside; replace() says what came of it.
    std::function<void(const Spool::Entry&, const std::string& why)> damaged;
  };
  explicit Outbox(Io io) : io_(std::move(io)) {}

  void add(Spool::Entry entry);
  void clear() {
    items_.clear();
    said_ = 0;
  }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  bool holds(AttemptId attempt) const { return items_.contains(attempt); }
  // At most kBatchItems of them, oldest first.
  std::vector<AttemptId> unacked() const;

  void on_chunk_ack(const wire::ChunkAck& ack, Instant now);
  // True: it was here, and the spool may drop it.
  bool on_acked(AttemptId attempt) { return items_.erase(attempt) != 0; }
  // A Sync with this ticket goes out; tickets grow, 0 is none.
  void on_sync(std::uint64_t ticket) { said_ = ticket; }
  // The coordinator lacks it, says the answer to the Sync of this ticket (0: it does not say
  // which). A transfer that moved lately is left alone, and so is a result that was sent behind
  // that Sync: one connection keeps the order, so the answer was written before the result could be
  // read.
  void on_resend(AttemptId attempt, std::uint64_t ticket, Instant now);
  // What takes the place of a damaged entry; an error: none could be written, tried again when the
  // coordinator asks.
  void replace(AttemptId attempt, Result<Spool::Entry> entry);
  // A connection came up: transfers that the old one cut start again.
  void on_link_up();
  // Starts what waits, within the window.  After every event and with every Sync.
  void pump(Instant now);

 private:
  enum class State { kQueued, kReading, kAwaitingChunkAck, kSent, kDamaged };
  struct Item {
    Spool::Entry entry;
    State state = State::kQueued;
    std::uint64_t offset = 0;
    std::uint64_t turn = 0;  // grows with each restart: late reads of an old turn are dropped
    Instant moved{};
    std::uint64_t behind = 0;    // kSent: ticket of the last Sync before the result; 0: none
    bool acknowledged = false;   // all of the archive, in this turn
    std::uint32_t rejected = 0;  // on this connection: all of it came, and was something else
    std::uint32_t unread = 0;    // times it could not be read here
  };
  void read_chunk(AttemptId attempt, Item& item, Instant now);
  void chunk_read(AttemptId attempt, std::uint64_t turn, Result<std::string> bytes, Instant now);
  void send_result(Item& item);
  void restart(Item& item);
  void give_up(Item& item, const std::string& why);

  Io io_;
  std::map<AttemptId, Item> items_;
  std::uint64_t turns_ = 0;
  std::uint64_t said_ = 0;  // the ticket of the last Sync; 0: none went out
};

}  // namespace proctor
