#pragma once
// The campaign's journal: one SQLite file (WAL, synchronous=FULL), written by one thread in groups.
// Owns the file, a lock beside it (FILE.lock: one coordinator per campaign) and its thread.
//
// append() is for the loop: it only queues.  Whatever waits when the thread is free becomes one
// transaction and one fsync; then each batch's callback runs ON THE JOURNAL THREAD, in the order of
// the appends (the loop posts it to itself).  `committed(ok)` means: on disk, survives power loss.
//
// After the first failure (disk full, failed fsync, a contradicting fact) nothing is written any
// more: that group's and all later callbacks get the error.  A failed fsync is never retried: the
// kernel may already have dropped the pages.  Restart reads back what is really there.
//
// Errors: kExhausted disk full or queue full, kUnavailable I/O error, kCorrupt damaged file or
// contradicting fact, kInvalid not a journal or from a newer Proctor, kConflict in use by another.
// Source: DISTRIBUTED B3, R18; docs/architecture.md.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/owner_lock.h"

namespace proctor {
class JournalStore;

// How long whoever wants the journal waits for one who has it: an act of an operator on a stopped
// campaign, or a look at who owns it, holds the lock for milliseconds; a coordinator for hours.
inline constexpr std::chrono::milliseconds kJournalPatience{1000};

// The one who has the journal open for writing after `patience`, if anyone.
std::optional<LockOwner> journal_owner(const fs::path& file,
                                       std::chrono::milliseconds patience = {});

struct JournalStats {
  std::uint64_t commits = 0;  // transactions made durable
  std::uint64_t batches = 0;  // appends in them
  std::uint64_t writes = 0;
};

class Journal {
 public:
  static constexpr std::size_t kQueuedWritesMax = 4'000'000;  // some hundred MiB: then it refuses

  // Creates the file if it is not there.  kConflict names the coordinator that has it open.
  static Result<std::unique_ptr<Journal>> open(const fs::path& file);
  ~Journal();  // as close(), ignoring its Status
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Thread-safe, never blocks on the disk.  An empty batch commits with its group.
  void append(std::vector<JournalWrite> batch, std::function<void(Status)> committed);
  // The same, and waits: for start and stop, not for the loop.
  Status append_and_wait(std::vector<JournalWrite> batch);

  // All that a resume needs.  Waits for the group that is being written, not for the queue.
  Result<RestoredState> load();
  Result<std::optional<std::string>> meta(const std::string& key);

  // Why it refuses further appends, if it does.
  std::optional<Error> failure() const;
  JournalStats stats() const;

  // Commits what is queued, checkpoints the file and gives the lock back.  The sticky error if any.
  Status close();

 private:
  struct Batch {
    std::vector<JournalWrite> writes;
    std::function<void(Status)> committed;
  };
  explicit Journal(std::unique_ptr<JournalStore> store);
  void run();
  Status commit(const std::deque<Batch>& group);

  std::mutex store_mutex_;  // held while a group is written or the state is read
  std::unique_ptr<JournalStore> store_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Batch> queue_;
  std::size_t queued_writes_ = 0;
  std::optional<Error> failure_;
  JournalStats stats_;
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};
}  // namespace proctor
