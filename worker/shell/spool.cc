#include "worker/shell/spool.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/wire/codec.h"

namespace proctor {
namespace {
constexpr std::string_view kResult = ".result";
constexpr std::string_view kArchive = ".tar.zst";
constexpr std::string_view kCorrupt = ".corrupt";
constexpr std::string_view kMagic = "proctor-spool-1 ";

fs::path with(const fs::path& parent, const std::string& name, std::string_view ending) {
  return parent / (name + std::string(ending));
}

Status remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return ok_status();
  return errno_error("remove " + path.string(), errno);
}

// Under a name that nothing here reads; absent is fine.
Status keep_aside(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error))) return ok_status();
  return rename_path(file, file.string() + std::string(kCorrupt));
}

enum class Want { kFolders, kFiles };
// The entries of `dir`, sorted; none when it is not there.
std::vector<fs::path> entries(const fs::path& dir, Want want) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error) == (want == Want::kFolders)) out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "17.1" of "17.1.result".
std::optional<std::string> attempt_of(const fs::path& file, std::string_view ending) {
  std::string name = file.filename().string();
  if (name.starts_with('.') || !name.ends_with(ending)) return std::nullopt;
  name.resize(name.size() - ending.size());
  return name;
}

std::string sealed(const wire::ResultMessage& result) {
  const std::string body = wire::encode(result);
  return std::string(kMagic) + sha256(body).hex() + "\n" + body;
}

// Builds before the seal wrote the message alone.
Result<wire::Message> unsealed(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return wire::decode(bytes);
  bytes.remove_prefix(kMagic.size());
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos) return Error{Errc::kCorrupt, "it is cut"};
  const std::string_view body = bytes.substr(line + 1);
  if (sha256(body).hex() != bytes.substr(0, line))
    return Error{Errc::kCorrupt, "its bytes are not those that were written"};
  return wire::decode(body);
}

// kCorrupt: the archive is missing, or not what its result names.  Anything else: this host could
// not read it now.
Status check_archive(const Spool::Entry& entry) {
  const Result<EvidenceFile> found =
      hash_file(entry.archive.parent_path(), entry.archive.filename().string());
  const auto damaged = [&](const std::string& what) {
    return Error{Errc::kCorrupt, entry.archive.filename().string() + ": " + what};
  };
  if (!found.ok() && found.error().code == Errc::kNotFound) return damaged("it is not there");
  if (!found.ok()) return found.error();
  if (found->bytes != entry.result.archive_bytes) return damaged("not the size its result names");
  if (found->digest != entry.result.archive)
    return damaged("its bytes are not those that were packed");
  return ok_status();
}
}  // namespace

bool is_plain_name(std::string_view text) {
  if (text.empty() || limits::kNameBytes < text.size() || text.front() == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<Spool> Spool::open(fs::path root) {
  PROCTOR_CHECK_OK(make_private_dirs(root));
  for (const fs::path& campaign : entries(root, Want::kFolders)) {
    for (const fs::path& file : entries(campaign, Want::kFiles)) {
      // A temporary file, or an archive whose result never came or has gone.
      const auto archived = attempt_of(file, kArchive);
      const bool half = file.filename().string().starts_with('.') ||
                        (archived && !fs::exists(with(campaign, *archived, kResult)));
      if (half) PROCTOR_CHECK_OK(remove_file(file));
    }
  }
  return Spool(std::move(root));
}

Result<fs::path> Spool::folder(const std::string& campaign) const {
  if (!is_plain_name(campaign)) return Error{Errc::kInvalid, "not a campaign's id: " + campaign};
  return root_ / campaign;
}

Result<Spool::Entry> Spool::put(const std::string& campaign, const wire::ResultMessage& result,
                                const fs::path& archive) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  const std::string name = to_string(result.attempt);
  if (fs::exists(with(parent, name, kResult))) return read(parent, name);
  if (!fs::exists(parent)) {
    PROCTOR_CHECK_OK(make_private_dirs(parent));
    if (const Status synced = sync_path(root_); !synced.ok()) {
      std::error_code ignored;
      fs::remove(parent, ignored);  // so that the next try makes and syncs it
      return synced.error();
    }
  }
  fs::path kept;
  if (!archive.empty()) {
    kept = with(parent, name, kArchive);
    std::error_code ec;
    const bool moved = !fs::exists(archive, ec) && fs::exists(kept, ec);  // by a try that failed
    if (!moved) PROCTOR_CHECK_OK(rename_path(archive, kept));
  }
  // Syncs the folder too, and with it the archive's name.
  PROCTOR_CHECK_OK(write_file(with(parent, name, kResult), sealed(result)));
  return Entry{result, kept};
}

Result<Spool::Entry> Spool::read(const fs::path& parent, const std::string& name) {
  const fs::path file = with(parent, name, kResult);
  PROCTOR_TRY(const std::string bytes, read_file(file, limits::kFrameBytes));
  Result<wire::Message> message = unsealed(bytes);
  if (!message.ok()) return in_context(file.string(), std::move(message).error());
  const auto* result = std::get_if<wire::ResultMessage>(&*message);
  if (result == nullptr || to_string(result->attempt) != name) {
    return Error{Errc::kCorrupt, file.string() + ": not the result of this attempt"};
  }
  Entry entry{*result, {}};
  if (0 < result->archive_bytes) entry.archive = with(parent, name, kArchive);
  return entry;
}

Result<std::vector<Spool::Entry>> Spool::load(const std::string& campaign) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  std::vector<Entry> found;
  for (const fs::path& file : entries(parent, Want::kFiles)) {
    const auto name = attempt_of(file, kResult);
    if (!name) continue;
    Result<Entry> entry = read(parent, *name);
    if (!entry.ok()) {
      log::error("spool: set aside: " + entry.error().detail);
      PROCTOR_CHECK_OK(keep_aside(with(parent, *name, kArchive)));
      PROCTOR_CHECK_OK(keep_aside(file));
      continue;
    }
    if (!entry->archive.empty()) {
      const Status whole =
          check_archive(*entry);  // what cannot be read now is read when it is sent
      if (!whole.ok() && whole.error().code == Errc::kCorrupt)
        entry = set_aside(campaign, *entry, whole.error().detail);
      PROCTOR_CHECK_OK(entry);
    }
    found.push_back(std::move(entry).value());
  }
  std::sort(found.begin(), found.end(),
            [](const Entry& a, const Entry& b) { return a.result.attempt < b.result.attempt; });
  return found;
}

// A kill between two of these leaves a result that names an archive which is not there: damaged.
Result<Spool::Entry> Spool::set_aside(const std::string& campaign, const Entry& damaged,
                                      const std::string& why) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  const std::string name = to_string(damaged.result.attempt);
  log::error("spool: attempt " + name + " is set aside: " + why);
  PROCTOR_CHECK_OK(keep_aside(with(parent, name, kArchive)));
  PROCTOR_CHECK_OK(write_file(with(parent, name, kResult).string() + std::string(kCorrupt),
                              sealed(damaged.result)));
  Entry entry{damaged.result, {}};
  wire::lose_evidence(
      entry.result,
      printable("its evidence was damaged on the worker's disk: " + why, limits::kDetailBytes));
  PROCTOR_CHECK_OK(write_file(with(parent, name, kResult), sealed(entry.result)));
  return entry;
}

Result<std::string> Spool::read_part(const Entry& entry, std::uint64_t offset, std::size_t bytes) {
  if (offset == 0) PROCTOR_CHECK_OK(check_archive(entry));
  const std::string path = entry.archive.string();
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) return Error{Errc::kCorrupt, path + " is gone"};
  if (!fd.valid()) return errno_error("open " + path, errno);
  std::string part(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t n =
        ::pread(fd.get(), part.data() + have, bytes - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read " + path, errno);
    if (n == 0) return Error{Errc::kCorrupt, path + " is shorter than it was"};
    have += static_cast<std::size_t>(n);
  }
  return part;
}

bool Spool::all_results_read(const std::string& campaign) const {
  const Result<fs::path> dir = folder(campaign);
  if (!dir.ok()) return false;
  const std::string ending = std::string(kResult) + std::string(kCorrupt);
  return std::ranges::none_of(entries(*dir, Want::kFiles), [&](const fs::path& file) {
    return file.filename().string().ends_with(ending);
  });
}

Status Spool::drop(const std::string& campaign, AttemptId attempt) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  const std::string name = to_string(attempt);
  // The result first: what is left of a kill between the two is no entry.
  PROCTOR_CHECK_OK(remove_file(with(parent, name, kResult)));
  return remove_file(with(parent, name, kArchive));
}

constexpr std::size_t kWindow = 8;  // transfers under way: bounds memory at 8 chunks
constexpr Millis kStalled{5'000};   // two lost Syncs: nothing that moved since is repeated
// An archive that left here whole and arrived as another: a bad disk or memory on either side.
constexpr std::uint32_t kRejectedMax = 3;
// A disk that does not read: tried again when the coordinator asks, every two seconds.
constexpr std::uint32_t kUnreadMax = 30;

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
