#pragma once
// Is a journal whole, and what can be saved of a damaged one?  SQLite notices a damaged page when
// it comes by, which may be never or at the next write; it never notices a damaged frame of its
// log.  So all of it is looked at: the log (sqlite.h), the pages (PRAGMA integrity_check), the rows
// (journal_rows.h), and what rows say of each other, and their seals (seals.h).  A last transaction
// that is missing as if the machine had lost power in it can be seen by no check.  Reads only; for
// a journal nobody writes to.  Any thread.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
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

// The result of salvage_journal().
struct Salvage {
  std::vector<std::string> notes;  // what was damaged, copied and taken out; for people
  std::vector<RunId> unreadable;   // runs whose attempts may be on a damaged page
  std::vector<EndedRun> ended;     // runs that had ended with an attempt that is not there
  std::vector<AttemptId> asked;    // attempts that Redis was asked for; of the caller
  bool tail_missing = false;       // later transactions are gone: any run may have begun since
  std::uint64_t rows = 0;          // copied
  std::vector<RunReviewed> reviews_lost;
};

// Copies what can still be read of a damaged journal into a new one.  A page that is damaged hides
// the rows it holds and nothing else: tables are read from both ends up to the damage, and inside
// by key.  Then whatever does not stand alone is taken out again, so that the new journal loads.
// The damaged file is only read.  One thread at a time.
// `fresh` was made by Journal and is empty.  `runs`: how many the plan has.
Result<Salvage> salvage_journal(const fs::path& damaged, sqlite::Database& fresh,
                                std::uint32_t runs);
}  // namespace proctor
