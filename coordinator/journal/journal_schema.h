#pragma once
// The tables of the journal and the checks that a file is one.  docs/journal.md describes them.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::journal {

inline constexpr std::int64_t kApplicationId = 0x50726374;  // "Prct", shown by file(1)
inline constexpr std::int64_t kSchemaVersion = 5;

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
