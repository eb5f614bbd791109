#include "coordinator/journal/journal.h"

#include <future>
#include <utility>

#include "coordinator/journal/journal_check.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_store.h"

namespace proctor {
namespace {
// Of one transaction: it bounds how long the first batch of a group waits for the last (about
// 50 ms), and the work that a failed group loses.
constexpr std::size_t kGroupWrites = 16'384;

const Error kClosed{Errc::kUnavailable, "journal: closed"};
}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const fs::path& file) {
  auto store = JournalStore::open(file);
  if (!store.ok()) return in_context("open journal", std::move(store).error());
  return std::unique_ptr<Journal>(new Journal(std::move(store).value()));
}

Journal::Journal(std::unique_ptr<JournalStore> store)
    : store_(std::move(store)), thread_([this] { run(); }) {}

Journal::~Journal() {
  (void)close();
}

void Journal::append(std::vector<JournalWrite> batch, std::function<void(Status)> committed) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      queued_writes_ += batch.size();
      if (kQueuedWritesMax < queued_writes_ && !failure_) {
        // Leaving out one batch and taking the next would be a gap: from here on nothing is taken.
        failure_ = Error{Errc::kExhausted, "journal: the disk does not keep up, queue is full"};
      }
      queue_.push_back({std::move(batch), std::move(committed)});
      wake_.notify_one();
      return;
    }
  }
  committed(kClosed);
}

Status Journal::append_and_wait(std::vector<JournalWrite> batch) {
  std::mutex done_mutex;
  std::condition_variable done;
  std::optional<Status> status;
  append(std::move(batch), [&](Status s) {
    const std::lock_guard lock(done_mutex);
    status = std::move(s);
    done.notify_one();
  });
  std::unique_lock lock(done_mutex);
  done.wait(lock, [&] { return status.has_value(); });
  return *status;
}

void Journal::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<Batch> group;
    std::size_t writes = 0;
    while (!queue_.empty() &&
           (group.empty() || writes + queue_.front().writes.size() <= kGroupWrites)) {
      writes += queue_.front().writes.size();
      group.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    const std::optional<Error> refused = failure_;
    lock.unlock();
    const Status status = refused ? Status(*refused) : commit(group);
    lock.lock();
    queued_writes_ -= writes;
    if (status.ok()) {
      ++stats_.commits;
      stats_.batches += group.size();
      stats_.writes += writes;
    } else if (!failure_) {
      failure_ = status.error();
    }
    lock.unlock();
    for (const Batch& batch : group) batch.committed(status);
    group.clear();
    lock.lock();
  }
}

Status Journal::commit(const std::deque<Batch>& group) {
  const std::lock_guard lock(store_mutex_);
  const auto write_all = [&]() -> Status {
    PROCTOR_TRY(auto transaction, store_->begin());
    for (const Batch& batch : group) {
      for (const JournalWrite& fact : batch.writes) PROCTOR_CHECK_OK(store_->write(fact));
    }
    return store_->commit(transaction);
  };
  if (auto s = write_all(); !s.ok()) return in_context("journal", std::move(s).error());
  return ok_status();
}

Result<RestoredState> Journal::load() {
  const std::lock_guard lock(store_mutex_);
  if (store_ == nullptr) return kClosed;
  PROCTOR_CHECK_OK(store_->expect_nobody_else());
  // What the load does not come by is looked at meanwhile: nothing goes on upon a damaged page.
  std::future<Status> pages = std::async(std::launch::async, [file = store_->db().filename()] {
    auto db = sqlite::Database::open(file, sqlite::Database::Mode::kReadOnly);
    return db.ok() ? journal::check_pages(*db) : Status(std::move(db).error());
  });
  Result<RestoredState> state = journal::load_state(store_->db());
  PROCTOR_CHECK_OK(pages.get());
  return state;
}

Result<std::optional<std::string>> Journal::meta(const std::string& key) {
  const std::lock_guard lock(store_mutex_);
  if (store_ == nullptr) return kClosed;
  return journal::load_meta(store_->db(), key);
}

std::optional<Error> Journal::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

JournalStats Journal::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Status Journal::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(store_mutex_);
  Status status = ok_status();
  if (const auto failed = failure()) {
    status = *failed;
  } else if (store_ != nullptr) {
    status = store_->checkpoint();
  }
  store_.reset();
  return status;
}
}  // namespace proctor
