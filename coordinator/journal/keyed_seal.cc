#include "coordinator/journal/keyed_seal.h"

#include <fmt/format.h>

#include <cstring>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "coordinator/core/records.h"

namespace proctor::journal {
namespace {

std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}
std::string_view sum_of(const BlockSeal& seal) {
  return {reinterpret_cast<const char*>(seal.sum.data()), sizeof seal.sum};
}

Digest mac_of(const KeyedSeal& s, const HmacKey& key) {
  return key.mac(fmt::format("proctor-keyed-seal-1 {} {} {} {} {} {}", s.key, s.since.raw(),
                             s.at.raw(), s.commits, s.all.rows, to_hex(sum_of(s.all))));
}

void subtract(BlockSeal& from, const BlockSeal& other) {
  from.rows -= other.rows;
  for (std::size_t i = 0; i < from.sum.size(); ++i) from.sum[i] -= other.sum[i];
}
void add(BlockSeal& to, const BlockSeal& other) {
  to.rows += other.rows;
  for (std::size_t i = 0; i < to.sum.size(); ++i) to.sum[i] += other.sum[i];
}

Result<BlockSeal> all_rows(sqlite::Database& db, const HmacKey& key) {
  BlockSeal all;
  PROCTOR_CHECK_OK(each_sealed_row(
      db, [&](const BlockId&, const Digest& row) { all.add(key.mac(bytes_of(row))); }));
  return all;
}

Result<std::string> campaign_of(sqlite::Database& db) {
  PROCTOR_TRY(auto row, db.prepare("SELECT value FROM meta WHERE key = ?"));
  row.bind(0, std::string_view(kMetaCampaign));
  PROCTOR_TRY(const bool there, row.step());
  return there ? std::string(row.text(0)) : std::string();
}

Result<bool> has_rows(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t n, db.integer("SELECT (SELECT count(*) FROM meta) + (SELECT "
                                               "count(*) FROM epochs) + EXISTS(SELECT 1 FROM "
                                               "attempts) + EXISTS(SELECT 1 FROM notes)"));
  return n != 0;
}

}  // namespace

Result<std::optional<KeyedSeal>> read_keyed_seal(sqlite::Database& db) {
  PROCTOR_TRY(auto row,
              db.prepare("SELECT key, since_ms, at_ms, commits, rows, sum, mac FROM keyed_seal"));
  PROCTOR_TRY(const bool there, row.step());
  if (!there) return std::optional<KeyedSeal>();
  KeyedSeal seal;
  seal.key = std::string(row.text(0));
  seal.since = WallTime(row.integer(1));
  seal.at = WallTime(row.integer(2));
  seal.commits = row.integer(3);
  seal.all.rows = row.integer(4);
  const std::string sum(row.blob(5)), mac(row.blob(6));
  Digest::Bytes bytes{};
  if (sum.size() != sizeof seal.all.sum || mac.size() != bytes.size())
    return Error{Errc::kCorrupt, "the keyed seal is not one"};
  std::memcpy(seal.all.sum.data(), sum.data(), sum.size());
  std::memcpy(bytes.data(), mac.data(), mac.size());
  seal.mac = Digest(bytes);
  return std::optional<KeyedSeal>(seal);
}

bool is_of(const KeyedSeal& seal, const HmacKey& key) {
  return seal.key == key.id() && mac_of(seal, key) == seal.mac;
}

Result<SealFinding> check_keyed_seal(sqlite::Database& db, const HostKey& key) {
  SealFinding out;
  auto read = read_keyed_seal(db);
  if (!read.ok() && read.error().code != Errc::kCorrupt) return std::move(read).error();
  if (!read.ok()) return SealFinding{SealVerdict::kBroken, {}};
  out.seal = std::move(read).value();
  PROCTOR_TRY(const std::string campaign, campaign_of(db));
  const bool ours = out.seal && out.seal->key == key.key().id();
  if (!ours) {
    out.verdict = key.has_sealed(campaign) ? SealVerdict::kTaken
                  : out.seal               ? SealVerdict::kOtherKey
                                           : SealVerdict::kNone;
    return out;
  }
  PROCTOR_TRY(const BlockSeal there, all_rows(db, key.key()));
  const bool fits = is_of(*out.seal, key.key()) && there == out.seal->all;
  out.verdict = fits ? SealVerdict::kFits : SealVerdict::kBroken;
  return out;
}

Result<std::unique_ptr<SealWriter>> SealWriter::attach(sqlite::Database& db) {
  Result<fs::path> file = host_key_file();
  Result<HostKey> key =
      file.ok() ? HostKey::read_or_make(*file) : Result<HostKey>(std::move(file).error());
  if (!key.ok()) {
    log::warn("the journal is not sealed with a key of this host: " + key.error().detail);
    PROCTOR_CHECK_OK(db.exec("DELETE FROM keyed_seal"));
    return std::unique_ptr<SealWriter>();
  }
  std::unique_ptr<SealWriter> out(new SealWriter(db, std::move(key).value()));
  PROCTOR_TRY(out->write_, db.prepare("INSERT INTO keyed_seal(id, key, since_ms, at_ms, commits, "
                                      "rows, sum, mac) VALUES(1, ?, ?, ?, ?, ?, ?, ?) ON "
                                      "CONFLICT(id) DO UPDATE SET key = excluded.key, since_ms = "
                                      "excluded.since_ms, at_ms = excluded.at_ms, commits = "
                                      "excluded.commits, rows = excluded.rows, sum = "
                                      "excluded.sum, mac = excluded.mac"));
  const auto read = read_keyed_seal(db);
  if (!read.ok() && read.error().code != Errc::kCorrupt) return read.error();
  const HmacKey& ours = out->key_.key();
  if (read.ok() && *read && is_of(**read, ours)) {
    out->seal_ = **read;
    return out;
  }
  PROCTOR_TRY(const bool begun, has_rows(db));
  PROCTOR_TRY(const std::string campaign, campaign_of(db));
  const bool broken = !read.ok() || (*read && (*read)->key == ours.id());
  if (broken || (begun && out->key_.has_sealed(campaign))) {
    log::error(
        fmt::format("{}: the seal that this host keyed does not fit any more: rows were "
                    "changed behind the coordinator's back (proctor verify)",
                    db.filename()));
    return out;
  }
  PROCTOR_CHECK_OK(out->seal_all_again());
  return out;
}

void SealWriter::begin() {
  plus_ = minus_ = BlockSeal{};
}

void SealWriter::note(const Digest& row, bool plus) {
  if (seal_) (plus ? plus_ : minus_).add(key_.key().mac(bytes_of(row)));
}

Status SealWriter::store() {
  if (!seal_) return ok_status();
  KeyedSeal next = *seal_;
  add(next.all, plus_);
  subtract(next.all, minus_);
  begin();
  return write(std::move(next));
}

Status SealWriter::seal_all_again() {
  KeyedSeal fresh;
  fresh.key = key_.key().id();
  fresh.since = wall_now();
  PROCTOR_TRY(fresh.all, all_rows(db_, key_.key()));
  begin();
  return write(std::move(fresh));
}

Status SealWriter::write(KeyedSeal next) {
  ++next.commits;
  next.at = wall_now();
  next.mac = mac_of(next, key_.key());
  write_.bind(0, std::string_view(next.key));
  write_.bind(1, next.since.raw());
  write_.bind(2, next.at.raw());
  write_.bind(3, next.commits);
  write_.bind(4, next.all.rows);
  write_.bind_blob(5, sum_of(next.all));
  write_.bind_blob(6, bytes_of(next.mac));
  PROCTOR_CHECK_OK(write_.run());
  seal_ = std::move(next);  // if the commit fails, nothing is written after it
  return remembered_ ? ok_status() : remember();
}

// The campaign's id comes with the first facts.  A list that cannot be written costs no run.
Status SealWriter::remember() {
  PROCTOR_TRY(const std::string campaign, campaign_of(db_));
  if (campaign.empty()) return ok_status();
  remembered_ = true;
  if (const Status s = key_.remember(campaign); !s.ok())
    log::warn("the list of sealed campaigns: " + s.error().detail);
  return ok_status();
}

}  // namespace proctor::journal
