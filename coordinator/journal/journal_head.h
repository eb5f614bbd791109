#pragma once
// The head of a journal, to be kept elsewhere: one line that stands for every fact that was final
// at a time, so that a later journal of the campaign can be held against it.  Final are results,
// settlements, notes, epochs, reviews, and what the campaign is; what may still move (who has an
// attempt, what is parked) is not in it.  A journal that goes on honestly extends every head that
// was ever taken of it; one whose rows were rewritten does not, whoever holds which key.
//
// Facts are told apart by the coordinator's clock.  A clock that is set back behind a head makes
// the journal seem to have had more facts then.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {

struct JournalHead {
  std::string campaign;
  WallTime until;  // facts up to then, inclusive
  std::int64_t facts = 0;
  Digest digest;     // over all of them, in order
  std::string key;   // id of the host's key that signed it; empty: none
  Digest signature;  // HMAC of the line up to the key
  friend bool operator==(const JournalHead&, const JournalHead&) = default;
};

// "proctor-head-1 CAMPAIGN MILLISECONDS FACTS DIGEST [KEY SIGNATURE]"
std::string to_string(const JournalHead& head);
// One line, an end of line allowed.  kInvalid: it is none.
Result<JournalHead> parse_head(std::string_view line);
void sign(JournalHead& head, const HmacKey& key);
bool is_signed_by(const JournalHead& head, const HmacKey& key);

namespace journal {
// When the last final fact was written; nothing: there is none.
Result<std::optional<WallTime>> last_fact(sqlite::Database& db);
// Unsigned.  Reads every row; opens a snapshot of its own.
Result<JournalHead> head_until(sqlite::Database& db, WallTime until);
}  // namespace journal

}  // namespace proctor
