#pragma once
// Is a journal whole?  SQLite notices a damaged page when it comes by, which may be never or at the
// next write; it never notices a damaged frame of its log.  So all of it is looked at: the log
// (journal_wal.h), the pages (PRAGMA integrity_check), the rows (journal_rows.h), and what rows say
// of each other, and their seals (row_seals.h).  What no check can see: a last transaction that is
// missing as if the machine had lost power in it.  Reads only; for a journal nobody writes to.  Any
// thread.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/journal_wal.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {

struct JournalFinding {
  std::vector<std::string> problems;  // empty: it is whole
  // There is no file, or nothing was ever written into it: whole as far as it goes.  What is around
  // it says whether that can be.
  bool blank = false;
  WalFacts wal;
  std::uint64_t attempts = 0, ended = 0, parked = 0, reviews = 0, notes = 0;
  Epoch last_epoch;
};

// Everything, also of a file that is not there.  An error only when the files cannot be read at
// all; damage is a finding.
Result<JournalFinding> check_journal(const fs::path& file);

namespace journal {

// The pages and the texts: what must hold before a journal is gone on with.  Half a second for
// 300,000 runs.  kCorrupt names the first damage.
Status check_pages(sqlite::Database& db);

}  // namespace journal
}  // namespace proctor
