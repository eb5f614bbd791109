#pragma once
// What SQLite does not tell about a journal's files: how much of the write-ahead log it takes.  It
// reads the log up to the first frame whose checksum is wrong and forgets the rest without a word.
// That is right after a crash, when the rest was never synced.  It is a loss when transactions that
// were durable stand behind it, and those can be told: a commit is only begun when the one before
// is on disk, so two commits behind a broken frame mean that one of them was; and the log's index,
// where it survived, is only moved on after the sync.  The index also tells of a log that is gone.
// Source: "WAL-mode File Format", sqlite.org/fileformat2.html section 4.  Reads files, thread-safe.
#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct WalFacts {
  bool there = false;
  bool header_broken = false;  // nothing of it can be read
  std::uint64_t frames = 0;    // whole ones in the file, valid or not
  std::uint64_t valid = 0;     // up to the last commit: what SQLite takes
  std::uint64_t commits = 0;   // transactions in those
  std::uint64_t behind = 0;    // commits of the same log behind the first broken frame
  std::uint64_t indexed = 0;   // frames that its index (FILE-shm) calls durable; 0: it does not say
  // Of a log that is missing or empty: durable frames of its index that are not in the journal.
  std::uint64_t gone = 0;
};

// kInvalid: the journal, a file of SQLite's beside it, or its lock is none but a pipe, a device, a
// folder or a link.  SQLite opens by name, and would wait for a pipe's other end for ever: call it
// before anything is opened.
Status check_journal_kinds(const fs::path& journal);

// Of the log beside this journal.  kUnavailable: it cannot be read.
Result<WalFacts> wal_facts(const fs::path& journal);

// kCorrupt with what is damaged: a journal that SQLite would open as if nothing were missing.  Call
// it before SQLite opens the file for writing, which may remove the log.
Status check_journal_files(const fs::path& journal);

}  // namespace proctor
