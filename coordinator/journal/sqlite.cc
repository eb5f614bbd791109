#include "coordinator/journal/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/owned.h"

namespace proctor {
namespace {
constexpr std::size_t kHeader = 32, kFrameHeader = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // its last bit: the checksums' byte order

using Bytes = std::vector<unsigned char>;

std::uint32_t big_endian(const unsigned char* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}
std::uint32_t little_endian(const unsigned char* p) {
  return std::uint32_t{p[3]} << 24 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[1]} << 8 | p[0];
}

struct Checksum {
  bool big = false;
  std::uint32_t a = 0, b = 0;
  // Over `size` bytes, a multiple of eight.
  void add(const unsigned char* p, std::size_t size) {
    for (const unsigned char* end = p + size; p < end; p += 8) {
      a += (big ? big_endian(p) : little_endian(p)) + b;
      b += (big ? big_endian(p + 4) : little_endian(p + 4)) + a;
    }
  }
  bool is(const unsigned char* stored) const {
    return a == big_endian(stored) && b == big_endian(stored + 4);
  }
};

// All of `out`, or false at the end of the file.
Result<bool> read_at(int fd, Bytes& out, std::uint64_t at, const fs::path& path) {
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t n =
        ::pread(fd, out.data() + have, out.size() - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read " + path.string(), errno);
    if (n == 0) return false;
    have += static_cast<std::size_t>(n);
  }
  return true;
}

fs::path beside(fs::path journal, const char* ending) {
  journal += ending;
  return journal;
}
fs::path wal_of(const fs::path& journal) {
  return beside(journal, "-wal");
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(path, ec);
  return ec ? 0 : size;
}

struct Index {
  bool readable = false;
  std::array<unsigned char, 8> salt{};
  std::uint64_t frames = 0;  // that it calls durable
  std::uint64_t moved = 0;   // of those, what is in the journal itself and synced
};

// The index begins with two copies of a header of words in the machine's own order: version, -,
// changes, page size, frames, pages, checksum of the last frame, salt of its log (as bytes),
// checksum of it all.  Then: how many frames a checkpoint has moved.
Result<Index> read_index(const fs::path& journal) {
  constexpr std::size_t kCopy = 48, kSummed = 40, kFramesAt = 16, kSaltAt = 32;
  constexpr std::size_t kMovedAt = 2 * kCopy;
  const fs::path path = beside(journal, "-shm");
  const Result<UniqueFd> fd = open_own_file(path, O_RDONLY);
  Index out;
  if (!fd.ok()) return out;
  Bytes head(kMovedAt + 4);
  PROCTOR_TRY(const bool whole, read_at(fd->get(), head, 0, path));
  Checksum sum;
  sum.big = std::endian::native == std::endian::big;
  sum.add(head.data(), kSummed);
  const auto word = [&](std::size_t at) {
    return sum.big ? big_endian(head.data() + at) : little_endian(head.data() + at);
  };
  out.readable = whole && std::equal(head.begin(), head.begin() + kCopy, head.begin() + kCopy) &&
                 word(kSummed) == sum.a && word(kSummed + 4) == sum.b;
  if (!out.readable) return out;
  std::copy_n(head.begin() + kSaltAt, out.salt.size(), out.salt.begin());
  out.frames = word(kFramesAt);
  out.moved = std::min<std::uint64_t>(word(kMovedAt), out.frames);
  return out;
}

// Nobody syncs the index: after a power loss it may be older than the log.  Written before this
// boot it tells nothing of a log that is gone.
bool is_of_this_boot(const fs::path& file) {
  struct stat is {};
  timespec wall{}, up{};
  if (::stat(file.c_str(), &is) != 0 || ::clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
      ::clock_gettime(CLOCK_BOOTTIME, &up) != 0)
    return false;
  return wall.tv_sec - up.tv_sec <= is.st_mtim.tv_sec;
}

// Of a log that is not there, or has nothing in it: what its index says that it had and that no
// checkpoint has moved.  Who empties or removes a log moves all of it first, and says so in the
// index.
Result<WalFacts> without_log(const fs::path& journal) {
  WalFacts out;
  if (!is_of_this_boot(beside(journal, "-shm"))) return out;
  PROCTOR_TRY(const Index index, read_index(journal));
  // One that is there by now was made meanwhile.
  if (size_of(wal_of(journal)) == 0) out.gone = index.frames - index.moved;
  return out;
}

// The frames behind the header; `sum` is that of the header.
Status read_frames(int fd, const fs::path& path, const Bytes& header, Checksum sum, WalFacts& out) {
  const std::size_t page = big_endian(header.data() + 8);
  Bytes frame(kFrameHeader + page);
  bool broken = false;
  for (std::uint64_t i = 0; i < out.frames; ++i) {
    PROCTOR_TRY(const bool whole, read_at(fd, frame, kHeader + i * frame.size(), path));
    if (!whole) return ok_status();
    const bool same_log = std::equal(frame.begin() + 8, frame.begin() + 16, header.begin() + 16);
    const bool commit = big_endian(frame.data() + 4) != 0;
    if (!broken) {
      sum.add(frame.data(), 8);
      sum.add(frame.data() + kFrameHeader, page);
      broken = !same_log || !sum.is(frame.data() + 16);
    }
    if (broken) {
      out.behind += same_log && commit;
    } else if (commit) {
      out.valid = i + 1;
      ++out.commits;
    }
  }
  return ok_status();
}
}  // namespace

Status check_journal_kinds(const fs::path& journal) {
  for (const char* ending : {"", "-wal", "-shm", "-journal", ".lock"})
    PROCTOR_CHECK_OK(check_own_file(beside(journal, ending)));
  return ok_status();
}

Result<WalFacts> wal_facts(const fs::path& journal) {
  WalFacts out;
  const fs::path path = wal_of(journal);
  const Result<UniqueFd> fd = open_own_file(path, O_RDONLY);
  if (!fd.ok() && fd.error().code == Errc::kNotFound) return without_log(journal);
  if (!fd.ok()) return fd.error();
  const std::uint64_t size = size_of(path);
  if (size == 0) return without_log(journal);
  out.there = true;
  Bytes header(kHeader);
  PROCTOR_TRY(const bool whole, read_at(fd->get(), header, 0, path));
  Checksum sum;
  const std::uint32_t magic = big_endian(header.data());
  sum.big = (magic & 1) != 0;
  sum.add(header.data(), 24);
  const std::uint32_t page = big_endian(header.data() + 8);
  const bool fits = 512 <= page && page <= 65536 && (page & (page - 1)) == 0;
  if (!whole || (magic & ~1U) != kMagic || !fits || !sum.is(header.data() + 24)) {
    out.header_broken = true;
    return out;
  }
  out.frames = (size - kHeader) / (kFrameHeader + page);
  // The index first: of a log that grows meanwhile it knows less, not more.
  PROCTOR_TRY(const Index index, read_index(journal));
  if (std::equal(index.salt.begin(), index.salt.end(), header.begin() + 16))
    out.indexed = index.frames;
  PROCTOR_CHECK_OK(read_frames(fd->get(), path, header, sum, out));
  return out;
}

Status check_journal_files(const fs::path& journal) {
  PROCTOR_TRY(const WalFacts wal, wal_facts(journal));
  const std::string log = wal_of(journal).string();
  const auto damaged = [](const std::string& what) { return Error{Errc::kCorrupt, what}; };
  if (0 < wal.gone)
    return damaged(fmt::format(
        "{} is missing or empty, and its index knows of {} durable frames that are not in the "
        "journal yet",
        log, wal.gone));
  // SQLite removes the log of a file without a page: whoever looked would be the one who lost it.
  constexpr std::uint64_t kLeastPage = 512;
  if (0 < wal.commits && size_of(journal) < kLeastPage)
    return damaged(fmt::format("{} is cut to nothing, and its log holds {} transactions of it",
                               journal.string(), wal.commits));
  // A header alone holds no transaction, whatever it is.
  if (wal.header_broken && kHeader < size_of(wal_of(journal)))
    return damaged(log + ": its header is damaged; what it holds is not in the journal yet");
  if (2 <= wal.behind)
    return damaged(log + ": frame " + std::to_string(wal.valid + 1) +
                   " or one soon after is damaged, and " + std::to_string(wal.behind) +
                   " later transactions stand behind it");
  if (wal.valid < wal.indexed)
    return damaged(log + ": " + std::to_string(wal.indexed) + " frames were durable, " +
                   std::to_string(wal.valid) + " can be read");
  // SQLite would remove the log of an empty file.
  if (0 < wal.frames && size_of(journal) == 0)
    return damaged(journal.string() + " is empty, and its log " + log + " is not");
  return ok_status();
}
}  // namespace proctor

namespace proctor::sqlite {
namespace {
// What the caller should do about a result code.
Errc code_for(int rc) {
  switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
    case SQLITE_NOMEM:
      return Errc::kExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_INTERRUPT:
      return Errc::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return Errc::kInvalid;
    default:
      return Errc::kCorrupt;
  }
}

// SQLite says "disk I/O error" for all of these.
constexpr std::array<std::pair<int, const char*>, 6> kIoSteps{
    {{SQLITE_IOERR_FSYNC, "fsync"},
     {SQLITE_IOERR_DIR_FSYNC, "fsync"},
     {SQLITE_IOERR_WRITE, "write"},
     {SQLITE_IOERR_READ, "read"},
     {SQLITE_IOERR_SHORT_READ, "read"},
     {SQLITE_IOERR_TRUNCATE, "truncate"}}};

Error error_of(sqlite3* db, int rc) {
  std::string detail = sqlite3_errstr(rc);
  if (db != nullptr) {
    const char* file = sqlite3_db_filename(db, "main");
    const char* text = sqlite3_errmsg(db);
    detail = std::string(file == nullptr ? "" : file) + ": " + (text == nullptr ? "" : text);
    for (const auto& [code, step] : kIoSteps)
      if (code == rc) detail += fmt::format(" ({} failed)", step);
    const int os = sqlite3_system_errno(db);
    if ((rc & 0xff) == SQLITE_CANTOPEN && os != 0) {
      detail += std::string(" (") + std::strerror(os) + ")";
    }
  }
  return Error{code_for(rc), detail};
}

// SQLite reads a URI up to its query or fragment and decodes the rest.
std::string uri_path(std::string_view path) {
  std::string out;
  for (const char c : path)
    out += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return out;
}
}  // namespace

void CloseDatabase::operator()(sqlite3* db) const noexcept {
  sqlite3_close_v2(db);
}
void FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

void Statement::bind(int at, std::int64_t value) {
  PROCTOR_ASSERT(sqlite3_bind_int64(handle_.get(), at + 1, value) == SQLITE_OK);
}
void Statement::bind(int at, std::string_view text) {
  const int rc =
      sqlite3_bind_text64(handle_.get(), at + 1, text.data() == nullptr ? "" : text.data(),
                          text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  PROCTOR_ASSERT(rc == SQLITE_OK);
}
void Statement::bind_blob(int at, std::string_view bytes) {
  const int rc =
      sqlite3_bind_blob64(handle_.get(), at + 1, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  PROCTOR_ASSERT(rc == SQLITE_OK);
}
void Statement::bind_null(int at) {
  PROCTOR_ASSERT(sqlite3_bind_null(handle_.get(), at + 1) == SQLITE_OK);
}
void Statement::bind_column(int at, const Statement& from, int column) {
  const int rc =
      sqlite3_bind_value(handle_.get(), at + 1, sqlite3_column_value(from.handle_.get(), column));
  PROCTOR_ASSERT(rc == SQLITE_OK || rc == SQLITE_NOMEM);
}

Result<bool> Statement::step() {
  const int rc = sqlite3_step(handle_.get());
  if (rc == SQLITE_ROW) return true;
  sqlite3* db = sqlite3_db_handle(handle_.get());
  if (rc == SQLITE_DONE) {
    sqlite3_reset(handle_.get());
    return false;
  }
  Error error = error_of(db, rc);
  sqlite3_reset(handle_.get());
  return error;
}

Result<std::int64_t> Statement::run() {
  while (true) {
    PROCTOR_TRY(const bool row, step());
    if (!row) return sqlite3_changes64(sqlite3_db_handle(handle_.get()));
  }
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}
std::string_view Statement::text(int column) const {
  return blob(column);
}
std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Statement::Kind Statement::kind(int column) const {
  switch (sqlite3_column_type(handle_.get(), column)) {
    case SQLITE_NULL:
      return Kind::kNull;
    case SQLITE_INTEGER:
      return Kind::kInteger;
    case SQLITE_BLOB:
      return Kind::kBlob;
    default:
      return Kind::kText;
  }
}
int Statement::columns() const {
  return sqlite3_column_count(handle_.get());
}
std::string Statement::name(int column) const {
  const char* name = sqlite3_column_name(handle_.get(), column);
  return name == nullptr ? "" : name;
}

Result<Database> Database::open(const fs::path& file, Mode mode) {
  PROCTOR_CHECK_OK(check_journal_kinds(file));
  std::string name = file.string();
  if (mode == Mode::kImmutable) name = "file:" + uri_path(name) + "?immutable=1";
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kCreate) {
    flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  } else {
    flags |= SQLITE_OPEN_READONLY | (mode == Mode::kImmutable ? SQLITE_OPEN_URI : 0);
  }
  // SQLite would make it for every user to read; the files beside it get its mode.
  if (mode == Mode::kCreate) {
    const UniqueFd made(
        ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  }
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  std::unique_ptr<sqlite3, CloseDatabase> db(raw);
  if (rc != SQLITE_OK) return error_of(raw, rc);
  // No trigger is ours: one that somebody has put there does nothing, whatever is written.  What a
  // view of somebody's calls is not to be trusted either.
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    if (const int off = sqlite3_db_config(raw, option, 0, nullptr); off != SQLITE_OK)
      return error_of(raw, off);
  sqlite3_busy_timeout(raw, 60'000);  // an operator's shell may hold the write lock for a while
  return Database(std::move(db));
}

Status Database::exec(const char* sql) {
  const int rc = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return error_of(db_.get(), rc);
  return ok_status();
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement statement;
  sqlite3_stmt* raw = nullptr;
  const int rc = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (rc != SQLITE_OK) return error_of(db_.get(), rc);
  statement.handle_.reset(raw);
  return statement;
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  PROCTOR_TRY(Statement statement, prepare(sql));
  PROCTOR_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

std::string Database::filename() const {
  const char* name = sqlite3_db_filename(db_.get(), "main");
  return name == nullptr ? "" : name;
}

Status Database::is_in_place() const {
  int moved = 0;
  const int asked = sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (asked != SQLITE_OK || moved == 0) return ok_status();
  return Error{Errc::kUnavailable, filename() +
                                       " was removed or renamed while it was written: nothing more "
                                       "is written; put it back (if its folder was moved: go on "
                                       "there), or see proctor journal recover"};
}

Result<Transaction> Transaction::begin(Database& db, const char* sql) {
  PROCTOR_CHECK_OK(db.exec(sql));
  return Transaction(&db);
}
Transaction::~Transaction() {
  if (db_ != nullptr) (void)db_->exec("ROLLBACK");
}
Status Transaction::commit() {
  PROCTOR_CHECK_OK(db_->exec("COMMIT"));
  db_ = nullptr;
  return ok_status();
}

Result<Snapshot> Snapshot::of(Database& db) {
  if (sqlite3_get_autocommit(db.handle()) == 0) return Snapshot(std::nullopt);
  PROCTOR_TRY(Transaction own, Transaction::begin(db, "BEGIN"));
  return Snapshot(std::move(own));
}
}  // namespace proctor::sqlite
