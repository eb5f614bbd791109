// A run whose invalid result an operator has set aside: rare, so its statements are made when one
// is asked for.
#include "coordinator/journal/journal_store.h"

namespace proctor {
namespace {

constexpr const char* kSetAside =
    "UPDATE attempts SET sets_outcome = 0 WHERE run = ? AND attempt = ? AND sets_outcome = 1 AND "
    "outcome = 'invalid'";
constexpr const char* kReopened =
    "DELETE FROM runs WHERE run = ? AND attempt = ? AND state = 'ended' AND outcome = 'invalid'";
constexpr const char* kStillEnded =
    "SELECT 1 FROM runs WHERE run = ? AND attempt = ? AND state = 'ended'";

Result<sqlite::Statement> bound_to(sqlite::Database& db, const char* sql, const AttemptId& id) {
  PROCTOR_TRY(sqlite::Statement out, db.prepare(sql));
  out.bind(0, std::int64_t{id.run.raw()});
  out.bind(1, std::int64_t{id.no.raw()});
  return out;
}

}  // namespace

// Told again it finds nothing to do.  What the attempt ended otherwise stands, and contradicts.
Result<std::int64_t> JournalStore::put(const RunReopened& f) {
  for (const char* sql : {kSetAside, kReopened}) {
    PROCTOR_TRY(sqlite::Statement statement, bound_to(db_, sql, f.attempt));
    PROCTOR_CHECK_OK(statement.run());
  }
  PROCTOR_TRY(sqlite::Statement left, bound_to(db_, kStillEnded, f.attempt));
  PROCTOR_TRY(const bool ended, left.step());
  return ended ? 0 : 1;
}

}  // namespace proctor
