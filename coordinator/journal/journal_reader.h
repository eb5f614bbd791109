#pragma once
// Reads a journal while the coordinator writes it: for status, report, story and the aggregate.
// Owns a read-only connection; never takes the campaign's lock and never blocks the writer.  Each
// call sees one consistent state; two calls may see two, unless hold() was said.  One thread at a
// time.
// Errors: kNotFound no such file or nothing in it yet, kInvalid not a journal or from a newer
// Proctor, kCorrupt damaged.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/journal/journal_story.h"
#include "coordinator/journal/keyed_seal.h"

namespace proctor {

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
  // journal_story.h
  Status each_fact(std::optional<RunId> only, WallTime since,
                   const std::function<void(const StoryFact&)>& visit);
  Status each_row_of_all(const std::function<void(std::string_view table, const Json& row)>& visit);

  // Are all rows as the coordinator wrote them (row_seals.h)?  A sentence for each part that is
  // not.
  Result<std::vector<std::string>> check_seals();
  // What is in the file beside its own tables, views and indexes, or not as they are made: a
  // sentence each.
  Result<std::vector<std::string>> foreign_objects();
  // The head of their seals; nothing: the journal is older than those (schema 4).
  Result<std::optional<Digest>> head();
  // keyed_seal.h, journal_head.h
  Result<std::optional<journal::KeyedSeal>> keyed_seal();
  Result<journal::SealFinding> check_keyed_seal(const HostKey& key);
  Result<std::optional<WallTime>> last_fact();
  Result<JournalHead> head_until(WallTime until);

 private:
  explicit JournalReader(std::unique_ptr<sqlite::Database> db);
  std::unique_ptr<sqlite::Database> db_;
};

}  // namespace proctor
