#pragma once
// The journal's file for who writes it: its tables, and JournalStore.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/seals.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::journal {
// The tables of the journal and the checks that a file is one.  docs/journal.md describes them.

inline constexpr std::int64_t kApplicationId = 0x50726374;  // "Prct", shown by file(1)
inline constexpr std::int64_t kSchemaVersion = 7;

// Sets the connection up for writing and creates the tables in a new file.
Status prepare_for_writing(sqlite::Database& db);
// Whoever made the file ended before anything was in it: a full disk, a kill.  Said of one that no
// connection reads (it has a rollback journal only until it is switched to a WAL, which is the
// first thing done), and of an open one: the tables and the mark come in one transaction.
bool was_never_made(const fs::path& file);
Result<bool> has_nothing_yet(sqlite::Database& db);
// Tables and columns that an older schema lacks are there from then on, empty and for this
// connection alone: a reader knows one schema.  Seals are left out, for a journal that has none is
// another thing than one whose rows are not sealed.
// kInvalid: another application's file, or a schema newer than this build.
Status prepare_for_reading(sqlite::Database& db);
// A sentence on each table, view, index and trigger that this schema does not have, or has
// otherwise: whoever can write to the file can have rows rewritten by it, or shown otherwise.
Result<std::vector<std::string>> foreign_objects(sqlite::Database& db);
}  // namespace proctor::journal

namespace proctor {
// The writing side of the journal's file: the lock beside it, the connection, one prepared
// statement per fact.  Owned by Journal; one thread at a time.
class JournalStore {
 public:
  static Result<std::unique_ptr<JournalStore>> open(const fs::path& file);

  // The fence: kConflict where an epoch has begun that is not this store's own.  The lock beside
  // the file keeps a second writer out where locks reach; this does where they do not.
  Result<sqlite::Transaction> begin();
  // Between begin() and commit().  kCorrupt: the fact contradicts what is stored.
  Status write(const JournalWrite& fact);
  Status commit(sqlite::Transaction& transaction);

  // Between begin() and commit() of a transaction of the caller's: every row that is there,
  // however it came there.
  Status seal_again() { return seals_->seal_again(); }

  sqlite::Database& db() { return db_; }
  // What is read from here on is all that there is when an epoch begins: whatever another
  // connection commits in between refuses that epoch (kConflict).
  Status expect_nobody_else();
  // The last epoch is this store's own, whoever wrote it: a recovery copies rows through db() into
  // a file that it alone has.
  Status adopt_last_epoch() {
    PROCTOR_TRY(epoch_, last_epoch());
    return ok_status();
  }
  // Moves the WAL into the file.  The lock goes with the object.
  Status checkpoint();

 private:
  JournalStore(UniqueFd lock, sqlite::Database db) : lock_(std::move(lock)), db_(std::move(db)) {}
  Status prepare_all();
  Result<std::int64_t> last_epoch();
  Error fenced(const std::string& what) const;
  Result<std::int64_t> worker_id(const std::string& name);

  Result<std::int64_t> put(const AttemptGranted& f);
  Result<std::int64_t> put(const RunReopened& f);
  Result<std::int64_t> put(const RunReviewed& f);
  Result<std::int64_t> put(const EpochBegun& f);

  UniqueFd lock_;
  sqlite::Database db_;
  sqlite::Statement intent_, granted_, denied_, result_, settled_, voided_, lost_, cancelled_;
  sqlite::Statement parked_, unparked_, ended_, note_, epoch_new_, meta_, scope_, worker_,
      worker_new_;
  sqlite::Statement review_, review_seal_, reviews_head_, last_epoch_;
  std::int64_t epoch_ = 0;   // the last one, as this store has committed or found it
  std::int64_t begins_ = 0;  // once the transaction under way is committed
  std::optional<std::int64_t> version_read_;
  std::map<std::string, std::int64_t> workers_;
  std::unique_ptr<journal::RowSeals> seals_;  // follows db_
};
}  // namespace proctor
