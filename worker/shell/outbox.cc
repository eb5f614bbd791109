#include "worker/shell/outbox.h"

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"

namespace proctor {
namespace {

constexpr std::size_t kWindow = 8;  // transfers under way: bounds memory at 8 chunks
constexpr Millis kStalled{5'000};   // two lost Syncs: nothing that moved since is repeated
// An archive that left here whole and arrived as another: a bad disk or memory on either side.
constexpr std::uint32_t kRejectedMax = 3;
// A disk that does not read: tried again when the coordinator asks, every two seconds.
constexpr std::uint32_t kUnreadMax = 30;

}  // namespace

void Outbox::add(Spool::Entry entry) {
  Item item;
  const AttemptId id = entry.result.attempt;
  item.entry = std::move(entry);
  items_.emplace(id, std::move(item));
}

std::vector<AttemptId> Outbox::unacked() const {
  std::vector<AttemptId> out;
  for (const auto& [id, item] : items_) {
    if (out.size() == limits::kBatchItems) break;
    out.push_back(id);
  }
  return out;
}

void Outbox::restart(Item& item) {
  item.state = State::kQueued;
  item.offset = 0;
  item.turn = ++turns_;
  item.acknowledged = false;
}

void Outbox::give_up(Item& item, const std::string& why) {
  item.state = State::kDamaged;
  io_.damaged(item.entry, why);
}

void Outbox::replace(AttemptId attempt, Result<Spool::Entry> entry) {
  const auto it = items_.find(attempt);
  if (it == items_.end() || it->second.state != State::kDamaged) return;
  Item& item = it->second;
  if (!entry.ok()) {
    log::error("archive of " + to_string(attempt) + ": " + entry.error().detail);
    item.state = State::kSent;  // stays unacknowledged; the next resend finds it damaged again
    item.behind = 0;
    return;
  }
  item.entry = std::move(entry).value();
  restart(item);
}

void Outbox::on_link_up() {
  for (auto& [id, item] : items_) {
    item.rejected = 0;
    if (item.state != State::kSent && item.state != State::kDamaged)
      restart(item);  // whether that arrived, the reply to our Sync says
  }
}

void Outbox::on_resend(AttemptId attempt, std::uint64_t ticket, Instant now) {
  const auto it = items_.find(attempt);
  if (it == items_.end()) return;
  Item& item = it->second;
  if (item.state == State::kDamaged) return;  // another result is being written
  const bool moving = item.state == State::kReading || item.state == State::kAwaitingChunkAck;
  if (moving && now - item.moved < kStalled) return;
  if (item.state == State::kSent && ticket != 0 && ticket <= item.behind) return;
  restart(item);
}

void Outbox::pump(Instant now) {
  std::size_t active = 0;
  for (const auto& [id, item] : items_) {
    if (item.state == State::kReading || item.state == State::kAwaitingChunkAck) ++active;
  }
  for (auto& [id, item] : items_) {
    if (item.state != State::kQueued) continue;
    if (item.entry.archive.empty()) {
      send_result(item);
      if (item.state == State::kQueued) return;  // the port is full or alone: with the next Sync
    } else {
      if (kWindow <= active) continue;  // results without archive still go
      ++active;
      item.turn = ++turns_;
      read_chunk(id, item, now);
    }
  }
}

void Outbox::read_chunk(AttemptId attempt, Item& item, Instant now) {
  item.state = State::kReading;
  item.moved = now;
  const std::uint64_t left = item.entry.result.archive_bytes - item.offset;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(left, limits::kChunkBytes));
  io_.read(item.entry, item.offset, bytes,
           [this, attempt, turn = item.turn, now](Result<std::string> read) {
             chunk_read(attempt, turn, std::move(read), now);
           });
}

void Outbox::chunk_read(AttemptId attempt, std::uint64_t turn, Result<std::string> bytes,
                        Instant now) {
  const auto it = items_.find(attempt);
  if (it == items_.end() || it->second.turn != turn || it->second.state != State::kReading) return;
  Item& item = it->second;
  if (!bytes.ok() && (bytes.error().code == Errc::kCorrupt || kUnreadMax <= ++item.unread))
    return give_up(item, bytes.error().detail);
  if (!bytes.ok()) {
    log::error("archive of " + to_string(attempt) + ": " + bytes.error().detail);
    item.state = State::kSent;  // stays unacknowledged; the next resend tries again
    item.behind = 0;
    return;
  }
  const wire::ResultMessage& result = item.entry.result;
  wire::ArchiveChunk chunk{result.epoch,         attempt,
                           result.archive,       item.offset,
                           result.archive_bytes, std::move(bytes).value()};
  const bool whole = chunk.offset == 0 && chunk.bytes.size() == result.archive_bytes;
  if (!io_.send(chunk)) {
    restart(item);
    return;
  }
  item.moved = now;
  if (whole) {
    send_result(item);
  } else {
    item.state = State::kAwaitingChunkAck;
  }
}

void Outbox::send_result(Item& item) {
  if (io_.send(item.entry.result)) {
    item.state = State::kSent;
    item.behind = said_;
  } else {
    restart(item);
  }
}

void Outbox::on_chunk_ack(const wire::ChunkAck& ack, Instant now) {
  const auto it = items_.find(ack.attempt);
  if (it == items_.end()) return;
  Item& item = it->second;
  const bool all = item.entry.result.archive_bytes <= ack.next_offset;
  if (item.state == State::kSent) {
    item.acknowledged = item.acknowledged || all;
    // Nothing of it is there though all of it came: it was not what its result promised.  (Without
    // the acknowledgement it merely has not come; the next resend heals that.)
    if (ack.next_offset != 0 || !item.acknowledged || item.entry.archive.empty()) return;
    log::warn("archive of " + to_string(ack.attempt) + ": the coordinator got other bytes");
    restart(item);
    if (kRejectedMax <= ++item.rejected)
      give_up(item, "the coordinator found other bytes than promised " +
                        std::to_string(item.rejected) + " times");
    return;
  }
  if (item.state != State::kAwaitingChunkAck) return;
  item.moved = now;
  if (all) {
    item.acknowledged = true;
    send_result(item);
  } else {
    item.offset = ack.next_offset;
    read_chunk(ack.attempt, item, now);
  }
}

}  // namespace proctor
