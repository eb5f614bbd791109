#pragma once
// Rows of the journal as records, and the words stored in them.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/score/outcome.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::journal {
// The words of enumerations are part of the file's format.

// The counters of a meter as one text, "" when all are zero.
std::string metered_text(const Usage& usage);
bool read_metered(std::string_view text, Usage& out);  // false: not such a text

// Reading rows back into records.  Stored bytes are validated here: an unknown word, a number out
// of its range or a digest of another length is kCorrupt and names the attempt.

// All of it from one snapshot (the caller may hold a transaction; otherwise one is opened).
Result<RestoredState> load_state(sqlite::Database& db);
Result<std::optional<std::string>> load_meta(sqlite::Database& db, const std::string& key);
Result<std::vector<EpochBegun>> load_epochs(sqlite::Database& db);

// `only`: this run, else all of them in order.
Status each_attempt(sqlite::Database& db, std::optional<RunId> only,
                    const std::function<void(const AttemptRecord&)>& visit);
Result<std::vector<NoteRecord>> load_notes(sqlite::Database& db, std::int64_t after,
                                           std::size_t count_max);
}  // namespace proctor::journal
