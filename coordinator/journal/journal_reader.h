#pragma once
// Reading a journal: its head, its facts in the order of time, and JournalReader, which reads while
// a coordinator writes.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/seals.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {
// The head of a journal, to be kept elsewhere: one line that stands for every fact that was final
// at a time, so that a later journal of the campaign can be held against it.  Final are results,
// settlements, notes, epochs, reviews, and what the campaign is; what may still move (who has an
// attempt, what is parked) is not in it.  A journal that goes on honestly extends every head that
// was ever taken of it; one whose rows were rewritten does not, whoever holds which key.
//
// Facts are told apart by the coordinator's clock.  A clock that is set back behind a head makes
// the journal seem to have had more facts then.
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

// A journal in the order of time, and as lines for other programs.  Reads rows one by one:
// memory does not grow with the campaign.  One thread; errors as those of JournalReader.

// One thing that happened.
struct StoryFact {
  WallTime at;
  std::optional<RunId> run;  // none: of the campaign
  std::optional<AttemptNo> attempt;
  std::string fact;    // "intent", "granted", "result", ..., "epoch", or the kind of a note
  std::string detail;  // why, how much, where; of a note as it is stored
};
void fields(auto& v, Is<StoryFact> auto& f) {
  v("at_ms", f.at);
  v("run", f.run);
  v("attempt", f.attempt);
  v("fact", f.fact);
  v("detail", f.detail);
}

// Reads a journal while the coordinator writes it: for status, report, story and the aggregate.
// Owns a read-only connection; never takes the campaign's lock and never blocks the writer.  Each
// call sees one consistent state; two calls may see two, unless hold() was said.  One thread at a
// time.
// Errors: kNotFound no such file or nothing in it yet, kInvalid not a journal or from a newer
// Proctor, kCorrupt damaged.
class JournalReader {
 public:
  static Result<JournalReader> open(const fs::path& file);
  JournalReader(JournalReader&&) noexcept;
  JournalReader& operator=(JournalReader&&) noexcept;
  ~JournalReader();

  // From now on all calls see what is there now, and the writer's log is kept until this is gone.
  // Once.
  Status hold();

  Result<RestoredState> load();
  Result<std::optional<std::string>> meta(const std::string& key);
  Result<std::vector<EpochBegun>> epochs();
  // By run, then attempt.
  Status each_attempt(const std::function<void(const AttemptRecord&)>& visit);
  Result<std::vector<AttemptRecord>> attempts_of(RunId run);
  // In the order they were written, from `after` on (0: all), at most `count_max`.
  Result<std::vector<NoteRecord>> notes(std::int64_t after, std::size_t count_max);
  // All facts and the campaign itself, from `since` on; or those of one run, and every note: which
  // of them concern it, whoever knows the plan can say.  `unit`: of amounts in their details.
  Status each_fact(std::optional<RunId> only, WallTime since,
                   const std::function<void(const StoryFact&)>& visit,
                   std::string_view unit = "USD");
  // Every row of every table, from one snapshot: its table, and an object with a key for each
  // column.  Blobs are hexadecimal.
  Status each_row_of_all(const std::function<void(std::string_view table, const Json& row)>& visit);

  // Are all rows as the coordinator wrote them (seals.h)?  A sentence for each part that is not.
  Result<std::vector<std::string>> check_seals();
  // What is in the file beside its own tables, views and indexes, or not as they are made: a
  // sentence each.
  Result<std::vector<std::string>> foreign_objects();
  // The head of their seals; nothing: the journal is older than those (schema 4).
  Result<std::optional<Digest>> head();
  // As in seals.h.
  Result<std::optional<journal::KeyedSeal>> keyed_seal();
  Result<journal::SealFinding> check_keyed_seal(const HostKey& key);
  // When the last final fact was written; nothing: there is none.
  Result<std::optional<WallTime>> last_fact();
  // Unsigned.  Reads every row.
  Result<JournalHead> head_until(WallTime until);

 private:
  explicit JournalReader(std::unique_ptr<sqlite::Database> db);
  std::unique_ptr<sqlite::Database> db_;
};
}  // namespace proctor
