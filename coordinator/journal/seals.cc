#include "coordinator/journal/seals.h"

// The library has it where it is packaged with sessions, as Debian does; the header asks.
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <sqlite3.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/journal/journal_rows.h"

namespace proctor {
Result<Digest> seal_of(const Digest& before, const RunReviewed& r) {
  const Json row = {{"at_ms", r.at.raw()},
                    {"before", before.hex()},
                    {"charged", r.charged.micros()},
                    {"milli_minutes", r.milli_minutes},
                    {"note", r.note},
                    {"reviewer", r.by},
                    {"run", r.run.raw()},
                    {"seq", r.seq}};
  PROCTOR_TRY(const std::string canonical, canonical_json(row));
  return sha256(canonical);
}

std::string reviews_head(std::uint32_t count, const Digest& last) {
  return std::to_string(count) + " " + last.hex();
}
}  // namespace proctor

namespace proctor::journal {
namespace {
constexpr std::size_t kKnownMax = 4096;
constexpr int kStateColumn = 2, kChargedColumn = 13;  // of attempts; columns never move

const SealedTable* table_named(const std::string_view name) {
  const auto it = std::ranges::find(kSealedTables, name, &SealedTable::name);
  return it == kSealedTables.end() ? nullptr : &*it;
}

void append_number(std::string& out, std::int64_t n) {
  std::array<char, sizeof n> bytes{};
  std::memcpy(bytes.data(), &n, sizeof n);  // little-endian wherever we build
  out.append(bytes.data(), bytes.size());
}

// A NULL adds nothing, so that a row keeps its seal when a later schema adds a column.
void append_value(std::string& out, int column, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL) return;
  out += static_cast<char>(column);
  out += static_cast<char>(type);
  if (type == SQLITE_INTEGER) return append_number(out, sqlite3_value_int64(value));
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
  append_number(out, static_cast<std::int64_t>(size));
  if (bytes != nullptr) out.append(bytes, size);
}

std::string_view word_in(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  return text == nullptr ? "" : text;
}

// An attempt under way is written again with every step; what it holds is checked against the rules
// of its state, and sealed with its last fact.
bool is_final(sqlite3_value* state, sqlite3_value* charged) {
  if (sqlite3_value_type(charged) != SQLITE_NULL) return true;
  const std::string_view word = word_in(state);
  return word == "voided" || word == "denied";
}

std::int64_t block_of(const SealedTable& table, std::int64_t key) {
  return table.shift == kWhole ? 0 : key >> table.shift;
}

std::array<std::uint64_t, 4> lanes(const Digest& d) {
  std::array<std::uint64_t, 4> out{};
  std::memcpy(out.data(), d.bytes().data(), sizeof out);
  return out;
}

std::string_view bytes_of(const BlockSeal& seal) {
  return {reinterpret_cast<const char*>(seal.sum.data()), sizeof seal.sum};
}

void preupdate(void* self, sqlite3*, int op, const char*, const char* table, sqlite3_int64,
               sqlite3_int64) {
  static_cast<RowSeals*>(self)->changed(table, op != SQLITE_INSERT, op != SQLITE_DELETE);
}

using RowVisit = std::function<void(const BlockId&, const Digest&)>;

Status visit_table(sqlite::Database& db, const SealedTable& table, const RowVisit& visit) {
  PROCTOR_TRY(auto rows, db.prepare(std::string("SELECT * FROM ") + table.name));
  std::string bytes;
  return each_row(rows, [&] {
    const auto value = [&](int c) { return sqlite3_column_value(rows.handle(), c); };
    if (table.final_only && !is_final(value(kStateColumn), value(kChargedColumn))) return;
    bytes = table.name;
    for (int c = 0; c < sqlite3_column_count(rows.handle()); ++c) append_value(bytes, c, value(c));
    visit({table.name, block_of(table, rows.integer(0))}, sha256(bytes));
  });
}

struct SealRow {
  BlockId id;
  BlockSeal seal;
};
void fields(auto& v, Is<SealRow> auto& row) {
  v("part", row.id.first);
  v("block", row.id.second);
  fields(v, row.seal);
}

Result<sqlite::Statement> seal_writer(sqlite::Database& db) {
  return db.prepare(insertion(columns_of<SealRow>(), "seals", "INSERT OR REPLACE"));
}

Status write_seal(sqlite::Statement& statement, const BlockId& id, const BlockSeal& seal) {
  RowWriter v(statement);
  const SealRow row{id, seal};
  fields(v, row);
  PROCTOR_CHECK_OK(statement.run());
  return ok_status();
}

// "attempts of runs 16 to 31".
std::string describe(const BlockId& id) {
  const SealedTable* table = table_named(id.first);
  if (table == nullptr || table->shift == kWhole) return "table " + printable(id.first, 40);
  const std::int64_t size = std::int64_t{1} << table->shift;
  const std::int64_t first = id.second * size;
  return "table " + id.first + (table->shift == kNotesShift ? ", notes " : ", runs ") +
         std::to_string(first) + " to " + std::to_string(first + size - 1);
}
}  // namespace

void BlockSeal::add(const Digest& row) {
  ++rows;
  const auto more = lanes(row);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

RowSeals::RowSeals(sqlite::Database& db) : db_(db) {}

Result<std::unique_ptr<RowSeals>> RowSeals::attach(sqlite::Database& db) {
  std::unique_ptr<RowSeals> out(new RowSeals(db));
  PROCTOR_TRY(out->read_, db.prepare("SELECT rows, sum FROM seals WHERE part = ? AND block = ?"));
  PROCTOR_TRY(out->write_, seal_writer(db));
  PROCTOR_TRY(out->keyed_, SealWriter::attach(db));
  (void)sqlite3_preupdate_hook(db.handle(), preupdate, out.get());
  return out;
}
RowSeals::~RowSeals() {
  (void)sqlite3_preupdate_hook(db_.handle(), nullptr, nullptr);
}

void RowSeals::begin() {
  changes_.clear();
  if (keyed_) keyed_->begin();
  broken_ = false;
}

void RowSeals::changed(const char* name, bool there_was, bool there_is) {
  const SealedTable* table = table_named(name);
  if (table == nullptr) return;
  // Only two steps write over an attempt that was final, the second ask of a denied one and a late
  // result; to unpack the old row at every other would cost more than all seals.
  const bool was_open = table->final_only && there_was && there_is && !may_have_been_final();
  if (there_was && !was_open) note(*table, sqlite3_preupdate_old, &Change::minus);
  if (there_is) note(*table, sqlite3_preupdate_new, &Change::plus);
}

bool RowSeals::may_have_been_final() {
  sqlite3_value *state = nullptr, *charged = nullptr;
  if (sqlite3_preupdate_new(db_.handle(), kStateColumn, &state) != SQLITE_OK ||
      sqlite3_preupdate_new(db_.handle(), kChargedColumn, &charged) != SQLITE_OK)
    return true;
  return is_final(state, charged) || word_in(state) == "reserving";
}

void RowSeals::note(const SealedTable& table, ValueOf value_of, BlockSeal Change::*side) {
  const auto value = [&](int column) {
    sqlite3_value* out = nullptr;
    if (value_of(db_.handle(), column, &out) != SQLITE_OK) broken_ = true;
    return out;
  };
  if (table.final_only && !is_final(value(kStateColumn), value(kChargedColumn))) return;
  const std::int64_t key = sqlite3_value_int64(value(0));
  bytes_ = table.name;
  const int columns = sqlite3_preupdate_count(db_.handle());
  for (int c = 0; c < columns && !broken_; ++c) append_value(bytes_, c, value(c));
  const Digest row = sha256(bytes_);
  (changes_[{table.name, block_of(table, key)}].*side).add(row);
  if (keyed_) keyed_->note(row, side == &Change::plus);
}

Result<BlockSeal> RowSeals::stored(const BlockId& id) {
  if (const auto it = known_.find(id); it != known_.end()) return it->second;
  read_.bind(0, std::string_view(id.first));
  read_.bind(1, id.second);
  PROCTOR_TRY(const bool row, read_.step());
  if (!row) return BlockSeal{};
  BlockSeal seal;
  RowReader v(read_);
  fields(v, seal);
  read_.reset();
  return seal;
}

Status RowSeals::store() {
  if (broken_) return Error{Errc::kCorrupt, "a changed row could not be read for its seal"};
  if (kKnownMax < known_.size()) known_.clear();
  for (const auto& [id, change] : changes_) {
    PROCTOR_TRY(BlockSeal seal, stored(id));
    seal.rows += change.plus.rows - change.minus.rows;
    for (std::size_t i = 0; i < seal.sum.size(); ++i)
      seal.sum[i] += change.plus.sum[i] - change.minus.sum[i];
    PROCTOR_CHECK_OK(write_seal(write_, id, seal));
    known_[id] = seal;  // if the commit fails, nothing is written after it
  }
  const bool any = !changes_.empty();
  changes_.clear();
  return any && keyed_ ? keyed_->store() : ok_status();
}

Status RowSeals::seal_again() {
  begin();
  known_.clear();
  PROCTOR_CHECK_OK(db_.exec("DELETE FROM seals"));
  PROCTOR_TRY(const Blocks blocks, seal_all(db_));
  PROCTOR_CHECK_OK(store_seals(db_, blocks));
  return keyed_ ? keyed_->seal_all_again() : ok_status();
}

Result<bool> has_seals(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  return 4 <= version;
}

Status each_sealed_row(sqlite::Database& db, const RowVisit& visit) {
  for (const SealedTable& table : kSealedTables) PROCTOR_CHECK_OK(visit_table(db, table, visit));
  return ok_status();
}

Result<Blocks> seal_all(sqlite::Database& db) {
  Blocks blocks;
  PROCTOR_CHECK_OK(
      each_sealed_row(db, [&](const BlockId& id, const Digest& row) { blocks[id].add(row); }));
  return blocks;
}

Result<Blocks> stored_seals(sqlite::Database& db) {
  Blocks blocks;
  PROCTOR_TRY(auto rows, db.prepare("SELECT " + columns_of<SealRow>().names() + " FROM seals"));
  PROCTOR_CHECK_OK(each_row(rows, [&] {
    SealRow row;
    RowReader v(rows);
    fields(v, row);
    blocks[std::move(row.id)] = row.seal;
  }));
  return blocks;
}

Status store_seals(sqlite::Database& db, const Blocks& blocks) {
  PROCTOR_TRY(auto statement, seal_writer(db));
  for (const auto& [id, seal] : blocks) PROCTOR_CHECK_OK(write_seal(statement, id, seal));
  return ok_status();
}

std::vector<std::string> compare_seals(const Blocks& there, const Blocks& sealed) {
  std::vector<std::string> out;
  Blocks all = there;
  all.insert(sealed.begin(), sealed.end());
  for (const auto& [id, unused] : all) {
    const auto is = there.find(id), was = sealed.find(id);
    const BlockSeal now = is == there.end() ? BlockSeal{} : is->second;
    const BlockSeal then = was == sealed.end() ? BlockSeal{} : was->second;
    if (now == then) continue;
    const std::string what = now.rows == then.rows
                                 ? "a row is not as it was written"
                                 : std::to_string(now.rows) + " rows, but " +
                                       std::to_string(then.rows) + " were written";
    out.push_back(describe(id) + ": " + what);
  }
  return out;
}

Result<std::vector<std::string>> broken_seals(sqlite::Database& db) {
  PROCTOR_TRY(const bool sealed, has_seals(db));
  if (!sealed) return std::vector<std::string>();
  PROCTOR_TRY(const Blocks there, seal_all(db));
  PROCTOR_TRY(const Blocks written, stored_seals(db));
  return compare_seals(there, written);
}

Digest head_of(const Blocks& sealed) {
  std::string all;
  for (const auto& [id, seal] : sealed) {
    all += id.first + '\0';
    append_number(all, id.second);
    append_number(all, seal.rows);
    all += bytes_of(seal);
  }
  return sha256(all);
}

namespace {
std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

Digest mac_of(const KeyedSeal& s, const HmacKey& key) {
  return key.mac(fmt::format("proctor-keyed-seal-1 {} {} {} {} {} {}", s.key, s.since.raw(),
                             s.at.raw(), s.commits, s.all.rows, to_hex(bytes_of(s.all))));
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
  PROCTOR_TRY(const auto id, load_meta(db, kMetaCampaign));
  return id.value_or("");
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
              db.prepare("SELECT " + columns_of<KeyedSeal>().names() + " FROM keyed_seal"));
  PROCTOR_TRY(const bool there, row.step());
  if (!there) return std::optional<KeyedSeal>();
  KeyedSeal seal;
  RowReader v(row);
  fields(v, seal);
  if (!v.ok() || seal.mac == Digest()) return Error{Errc::kCorrupt, "the keyed seal is not one"};
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
  PROCTOR_TRY(out->write_,
              db.prepare(insertion(columns_of<KeyedSeal>(), "keyed_seal", "INSERT OR REPLACE")));
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
  RowWriter v(write_);
  fields(v, next);
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
