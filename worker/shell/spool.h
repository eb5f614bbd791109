#pragma once
// Spool and Outbox: the Spool keeps results that the coordinator has not yet acknowledged, on
// disk, and the Outbox brings them to it (docs/protocol.md).
//   ROOT/<campaign>/<run>.<attempt>.tar.zst  the run directory, when the result names one
//   ROOT/<campaign>/<run>.<attempt>.result   "proctor-spool-1 DIGEST", an encoded
//                                            wire::ResultMessage; the entry is there with it
//   ROOT/<campaign>/*.corrupt                set aside, for a person: not the bytes that were put
// The result comes last (both synced), goes first, and is there until it is acknowledged, through
// kill -9 and power loss.  The Spool is blocking and thread-safe (each call works on one entry's
// files; two calls for one entry never overlap by the loop's own bookkeeping).
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/wire/messages.h"

namespace proctor {
class Spool {
 public:
  struct Entry {
    wire::ResultMessage result;
    fs::path archive;  // empty: it has none
  };

  // Makes the folder; removes what a killed life left half-built.
  static Result<Spool> open(fs::path root);

  // `archive` (may be empty, else synced) is moved in: same file system.  kInvalid: not a
  // campaign's id.
  // Putting an attempt that is there keeps the first: an attempt has one result.
  Result<Entry> put(const std::string& campaign, const wire::ResultMessage& result,
                    const fs::path& archive);
  // The entries of one campaign, by attempt, archives read through.  A result that does not read
  // back is set aside; one whose archive does not is too, and comes as set_aside() makes it.
  Result<std::vector<Entry>> load(const std::string& campaign);
  // Keeps the damaged entry as `*.corrupt` and puts in its place a result without evidence:
  // infrastructure, with the usage that was metered, and why.  Repeatable.
  Result<Entry> set_aside(const std::string& campaign, const Entry& damaged,
                          const std::string& why);
  // `bytes` of the archive from `offset` on.  From its beginning the whole archive is read through
  // first.  kCorrupt: it is not, or no longer, what its result names; no later try can help.
  static Result<std::string> read_part(const Entry& entry, std::uint64_t offset, std::size_t bytes);
  Status drop(const std::string& campaign, AttemptId attempt);
  // Was no result of it ever set aside?
  bool all_results_read(const std::string& campaign) const;
  const fs::path& root() const { return root_; }

 private:
  explicit Spool(fs::path root) : root_(std::move(root)) {}
  Result<fs::path> folder(const std::string& campaign) const;
  static Result<Entry> read(const fs::path& parent, const std::string& name);
  fs::path root_;
};

// Is it usable as one component of a path: 1 to kNameBytes of letters, digits, '.', '_', '-', and
// not beginning with a dot?
bool is_plain_name(std::string_view text);

// Outbox: brings spooled results to the coordinator and remembers which it has not acknowledged.  A
// result follows its archive: small archives travel as one chunk with the result right behind,
// larger ones chunk by chunk, each waiting for its ChunkAck.  Losing anything is healed by the next
// Sync: the coordinator answers with resend or acked.  Disk reads happen elsewhere (Io::read).
// An archive that is damaged here, or that the coordinator finds other than promised time and
// again, is given up: Io::damaged puts a result without evidence in its place (replace()).
// Thread: the loop's, all of it.
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
  // which).  A transfer that moved lately is left alone, and so is a result that was sent behind
  // that Sync: one connection keeps the order, so the answer was written before the result could be
  // read.
  void on_resend(AttemptId attempt, std::uint64_t ticket, Instant now);
  // The result in place of a damaged entry; an error: none could be written, tried again when the
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
