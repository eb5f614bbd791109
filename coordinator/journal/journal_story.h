#pragma once
// A journal told in the order of time, and as lines for other programs.  Reads rows one by one:
// memory does not grow with the campaign.  One thread; errors as journal_reader.h says.
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {

// One thing that happened.
struct StoryFact {
  WallTime at;
  std::optional<RunId> run;  // none: of the campaign
  std::optional<AttemptNo> attempt;
  std::string fact;    // "intent", "granted", "result", ..., "epoch", or the kind of a note
  std::string detail;  // why, how much, where; of a note as it is stored
};

namespace journal {

// Of all and the campaign itself, from `since` on; or of one run, and every note: which of them
// concern it, whoever knows the plan can say.
Status each_fact(sqlite::Database& db, std::optional<RunId> only, WallTime since,
                 const std::function<void(const StoryFact&)>& visit);

// Every row of every table, from one snapshot: its table, and an object with a key for each column.
// Blobs are hexadecimal.
Status each_row_of_all(sqlite::Database& db,
                       const std::function<void(std::string_view table, const Json& row)>& visit);

}  // namespace journal
}  // namespace proctor
