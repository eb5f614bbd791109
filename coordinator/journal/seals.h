#pragma once
// Seals of the journal: of rows, of reviews, and the host's key over all of them.
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/sqlite.h"

struct sqlite3_value;

namespace proctor {
// The seal of a booked review: SHA-256 over the canonical JSON of the review and of the seal before
// it.  No other row of the journal repeats what a review says, so this is what shows that one was
// changed.  Pure.

// `before`: of the review with the number before; zeros for the first.  kInvalid: a number beyond
// 2^53 - 1 or a text that is not UTF-8.
Result<Digest> seal_of(const Digest& before, const RunReviewed& review);

// The meta entry that says how many there are and the last one's seal: "3 <64 hex digits>".
inline constexpr const char* kMetaReviews = "reviews";
std::string reviews_head(std::uint32_t count, const Digest& last);
}  // namespace proctor

namespace proctor::journal {
// Seals of rows show that one of the journal was changed, added or taken away by somebody else than
// the coordinator.  Rows are sealed in blocks (16 runs of `attempts`, say): a block's seal is
// the number of its rows and the sum, in four lanes modulo 2^64, of the SHA-256 of each.  A sum
// does not depend on the order of the writes and follows a change of one row with one subtraction
// and one addition (Bellare and Micciancio 1997, AdHash), so nothing is read back while the
// campaign runs.
//
// Not keyed: who can change a row can change its seal, but not the one over all of them that the
// host's secret makes (KeyedSeal).

// One table's rows with block numbers, as the seals see them.
struct SealedTable {
  const char* name;
  const char* order;        // its key
  unsigned shift;           // block = first column >> shift; kWhole: one block
  bool final_only = false;  // rows of attempts are sealed once they are final
};
inline constexpr unsigned kWhole = 63;
// 16 runs: a difference is named closely enough for a person, and a seal costs 3 bytes a run.
inline constexpr unsigned kRunsShift = 4;
inline constexpr unsigned kNotesShift = 8;
// All that hold facts, in an order in which nothing refers to what comes later.
inline constexpr auto kSealedTables =
    std::to_array<SealedTable>({{"meta", "key", kWhole},
                                {"scopes", "id", kWhole},
                                {"epochs", "epoch", kWhole},
                                {"workers", "id", kWhole},
                                {"attempts", "run, attempt", kRunsShift, true},
                                {"runs", "run", kRunsShift},
                                {"reviews", "seq", kWhole},
                                {"notes", "seq", kNotesShift}});

struct BlockSeal {
  std::int64_t rows = 0;
  std::array<std::uint64_t, 4> sum{};
  void add(const Digest& row);
  friend bool operator==(const BlockSeal&, const BlockSeal&) = default;
};
void fields(auto& v, Is<BlockSeal> auto& seal) {
  v("rows", seal.rows);
  v("sum", seal.sum);
}
using BlockId = std::pair<std::string, std::int64_t>;  // table, block
using Blocks = std::map<BlockId, BlockSeal>;

class SealWriter;

// The writing side: follows every change that this connection makes.  Lives as long as the
// connection.
class RowSeals {
 public:
  // `db` outlives it and has the table `seals`.
  static Result<std::unique_ptr<RowSeals>> attach(sqlite::Database& db);
  ~RowSeals();
  RowSeals(const RowSeals&) = delete;
  RowSeals& operator=(const RowSeals&) = delete;

  void begin();    // of a transaction: what an abandoned one left is forgotten
  Status store();  // the last thing before its commit
  // Over every row that is there, in a transaction of the caller's: after rows were copied in.
  Status seal_again();

  void changed(const char* table, bool there_was, bool there_is);  // called by SQLite

 private:
  struct Change {
    BlockSeal plus, minus;
  };

  explicit RowSeals(sqlite::Database& db);
  using ValueOf = int (*)(sqlite3*, int, sqlite3_value**);
  void note(const SealedTable& table, ValueOf value_of, BlockSeal Change::*side);
  bool may_have_been_final();
  Result<BlockSeal> stored(const BlockId& id);

  sqlite::Database& db_;
  sqlite::Statement read_, write_;
  std::map<BlockId, Change> changes_;
  Blocks known_;                       // as stored; bounded
  std::unique_ptr<SealWriter> keyed_;  // none: no key could be made
  std::string bytes_;
  bool broken_ = false;  // SQLite gave no value: the change cannot be sealed
};

// A journal before schema 4 has none.
Result<bool> has_seals(sqlite::Database& db);
// Digests of every row that is there and is sealed, with their blocks.
Status each_sealed_row(sqlite::Database& db,
                       const std::function<void(const BlockId&, const Digest&)>& visit);
// Every row that is there, sealed.
Result<Blocks> seal_all(sqlite::Database& db);
Result<Blocks> stored_seals(sqlite::Database& db);
Status store_seals(sqlite::Database& db, const Blocks& blocks);

// What differs, in the order of the file: sentences such as "attempts of runs 16 to 31: ...".
std::vector<std::string> compare_seals(const Blocks& there, const Blocks& sealed);
// The rows that are there against their seals; nothing for a journal without.
Result<std::vector<std::string>> broken_seals(sqlite::Database& db);
// One digest over all seals.
Digest head_of(const Blocks& sealed);

// The keyed seal: one row that vouches for all rows of the journal, under the secret of the
// coordinator's host (host_key.h).  It holds the sum, as RowSeals has it, of the HMAC-SHA256 of
// every sealed row's digest, the number of rows and commits, and a MAC over all of that.  It is
// written in the transaction that changes a row.  Who rewrites rows and their seals together cannot
// make it fit.
//
// A seal that does not fit when the journal is opened is left as it is: nothing that was changed
// behind the coordinator's back is ever vouched for afterwards.
struct KeyedSeal {
  std::string key;  // id of the key
  WallTime since;   // what was there then was sealed as it was
  WallTime at;      // of the last commit
  std::int64_t commits = 0;
  BlockSeal all;  // of the MACs of all sealed rows
  Digest mac;
};
void fields(auto& v, Is<KeyedSeal> auto& seal) {
  std::uint32_t id = 1;
  v("id", id);
  v("key", seal.key);
  v("since_ms", seal.since);
  v("at_ms", seal.at);
  v("commits", seal.commits);
  fields(v, seal.all);
  v("mac", seal.mac);
}

// Nothing: a journal before schema 5, or one written where no key could be made.  kCorrupt: it is
// there and is none.
Result<std::optional<KeyedSeal>> read_keyed_seal(sqlite::Database& db);
// Whether its own MAC fits: says nothing of the rows yet.
bool is_of(const KeyedSeal& seal, const HmacKey& key);

enum class SealVerdict {
  kNone,      // there is none, and this host never sealed the campaign
  kTaken,     // there is none, or one of another key, and this host had sealed the campaign
  kOtherKey,  // of a key that is not this one
  kBroken,    // of this key, and it does not fit the rows
  kFits,
};
struct SealFinding {
  SealVerdict verdict = SealVerdict::kNone;
  std::optional<KeyedSeal> seal;
};
// Reads every row.  The caller holds a transaction.
Result<SealFinding> check_keyed_seal(sqlite::Database& db, const HostKey& key);

// The writing side, for RowSeals: one thread.
class SealWriter {
 public:
  // `db` outlives it.  A journal that this host must not vouch for is said once, in the log, and
  // its seal stays as it is.
  static Result<std::unique_ptr<SealWriter>> attach(sqlite::Database& db);

  bool on() const { return seal_.has_value(); }
  void begin();                             // forgets what an abandoned transaction left
  void note(const Digest& row, bool plus);  // a sealed row that is there now, or was
  Status store();                           // with the transaction
  // Over every row that is there: after rows were written past this connection's hook.
  Status seal_all_again();

 private:
  SealWriter(sqlite::Database& db, HostKey key) : db_(db), key_(std::move(key)) {}
  Status write(KeyedSeal next);
  Status remember();

  sqlite::Database& db_;
  HostKey key_;
  sqlite::Statement write_;
  std::optional<KeyedSeal> seal_;
  BlockSeal plus_, minus_;
  bool remembered_ = false;
};
}  // namespace proctor::journal
