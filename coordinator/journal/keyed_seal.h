#pragma once
// The keyed seal: one row that vouches for all rows of the journal, under the secret of the
// coordinator's host (host_key.h).  It holds the sum, as row_seals.h has it, of the HMAC-SHA256 of
// every sealed row's digest, the number of rows and commits, and a MAC over all of that.  It is
// written in the transaction that changes a row.  Who rewrites rows and their seals together cannot
// make it fit.
//
// A seal that does not fit when the journal is opened is left as it is: nothing that was changed
// behind the coordinator's back is ever vouched for afterwards.
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/row_seals.h"

namespace proctor::journal {

struct KeyedSeal {
  std::string key;  // id of the key
  WallTime since;   // what was there then was sealed as it was
  WallTime at;      // of the last commit
  std::int64_t commits = 0;
  BlockSeal all;  // of the MACs of all sealed rows
  Digest mac;
};

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
