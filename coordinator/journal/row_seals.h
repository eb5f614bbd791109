#pragma once
// Seals: what shows that a row of the journal was changed, added or taken away by somebody else
// than the coordinator.  Rows are sealed in blocks (16 runs of `attempts`, say): a block's seal is
// the number of its rows and the sum, in four lanes modulo 2^64, of the SHA-256 of each.  A sum
// does not depend on the order of the writes and follows a change of one row with one subtraction
// and one addition (Bellare and Micciancio 1997, AdHash), so nothing is read back while the
// campaign runs.
//
// Not keyed: who can change a row can change its seal, but not the one over all of them that the
// host's secret makes (keyed_seal.h).
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "coordinator/journal/sqlite.h"

struct sqlite3_value;

namespace proctor::journal {

// One table's rows with block numbers, as the seals see them.
struct SealedTable {
  const char* name;
  unsigned shift;           // block = first column >> shift; kWhole: one block
  bool final_only = false;  // rows of attempts are sealed once they are final
};
inline constexpr unsigned kWhole = 63;

struct BlockSeal {
  std::int64_t rows = 0;
  std::array<std::uint64_t, 4> sum{};
  void add(const Digest& row);
  friend bool operator==(const BlockSeal&, const BlockSeal&) = default;
};
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

}  // namespace proctor::journal
