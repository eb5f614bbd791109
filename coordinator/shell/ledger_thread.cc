#include "coordinator/shell/ledger_thread.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/overload.h"

namespace proctor {
namespace {
constexpr std::chrono::milliseconds kFirstPause(50);
}  // namespace

LedgerThread::LedgerThread(std::shared_ptr<LedgerStore> store, LedgerStart start,
                           Callbacks callbacks)
    : store_(std::move(store)),
      epoch_(start.epoch),
      scopes_(std::move(start.scopes)),
      spent_(std::move(start.spent)),
      callbacks_(std::move(callbacks)) {
  for (ReserveOp& op : start.pending) pending_.emplace(op.id, std::move(op));
}

Result<std::unique_ptr<LedgerThread>> LedgerThread::start(std::shared_ptr<LedgerStore> store,
                                                          LedgerStart start, Callbacks callbacks) {
  std::unique_ptr<LedgerThread> out(
      new LedgerThread(std::move(store), std::move(start), std::move(callbacks)));
  PROCTOR_CHECK_OK(out->store_->connect());
  log::info(out->store_->describe());
  const Status taken = out->rebuild();
  out->taken_ = taken.ok();
  if (!taken.ok() && taken.error().code != Errc::kUnavailable) return taken.error();
  out->thread_ = std::thread([raw = out.get()] { raw->run(); });
  return out;
}

LedgerThread::~LedgerThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LedgerThread::submit(std::vector<LedgerOp> ops) {
  {
    const std::lock_guard lock(mutex_);
    for (LedgerOp& op : ops) queue_.emplace_back(std::move(op));
  }
  wake_.notify_one();
}

Status LedgerThread::rebuild(bool own) {
  std::vector<ReserveOp> pending;
  for (const auto& [id, op] : pending_) pending.push_back(op);
  PROCTOR_TRY(const auto differences, store_->begin_epoch(epoch_, scopes_, pending, spent_));
  // What an interrupted life left unsaid, or somebody's hand: told, the journal's numbers stand.
  if (!own)
    for (const std::string& line : differences) log::warn("ledger: " + line);
  return ok_status();
}

void LedgerThread::raise(std::vector<ScopeSpec> scopes, std::vector<MicroUsd> reviewed) {
  {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(Change{std::move(scopes), std::move(reviewed)});
  }
  wake_.notify_one();
}

// Operations up to the next change; or that change.  Neither: stopping.
LedgerThread::Work LedgerThread::take() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  Work work;
  while (!stopping_ && !queue_.empty() && work.ops.size() < kLedgerBatch) {
    if (auto* change = std::get_if<Change>(&queue_.front())) {
      if (!work.ops.empty()) break;
      work.change = std::move(*change);
      queue_.pop_front();
      break;
    }
    work.ops.push_back(std::get<LedgerOp>(std::move(queue_.front())));
    queue_.pop_front();
  }
  return work;
}

void LedgerThread::run() {
  if (!taken_ && !take_over(Change{})) return;
  for (;;) {
    Work work = take();
    const bool more =
        work.change ? take_over(*std::move(work.change)) : !work.ops.empty() && apply(work.ops);
    if (!more) return;
  }
}

// The same as after a Redis that came back empty, with other caps or more spent: what was answered
// stays so.
bool LedgerThread::take_over(Change change) {
  if (!change.scopes.empty()) scopes_ = std::move(change.scopes);
  for (std::size_t s = 0; s < change.reviewed.size(); ++s)
    spent_[s] = spent_[s] + change.reviewed[s];
  std::chrono::milliseconds backoff = kFirstPause;
  for (;;) {
    const Status rebuilt = rebuild(true);
    if (rebuilt.ok()) {
      if (std::exchange(away_, false)) callbacks_.back();
      return true;
    }
    if (!wait_out(rebuilt.error(), backoff)) return false;
  }
}

bool LedgerThread::wait_out(Error error, std::chrono::milliseconds& backoff) {
  constexpr std::chrono::milliseconds kMost(2'000);
  if (error.code != Errc::kUnavailable && error.code != Errc::kNotFound) {
    callbacks_.failed(std::move(error));
    return false;
  }
  if (!std::exchange(away_, true)) callbacks_.away(error.detail);
  if (!pause(backoff)) return false;
  backoff = std::min(backoff * 2, kMost);
  return true;
}

bool LedgerThread::pause(std::chrono::milliseconds how_long) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, how_long, [this] { return stopping_; });
}

bool LedgerThread::apply(const std::vector<LedgerOp>& batch) {
  std::chrono::milliseconds backoff = kFirstPause;
  for (;;) {
    Result<std::vector<LedgerAnswer>> answers = store_->apply(epoch_, batch);
    if (answers.ok()) {
      if (std::exchange(away_, false)) callbacks_.back();
      std::vector<Answered> out;
      out.reserve(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i) {
        remember(batch[i], (*answers)[i]);
        out.push_back({batch[i], std::move((*answers)[i])});
      }
      callbacks_.answered(std::move(out));
      return true;
    }
    Error error = std::move(answers).error();
    if (error.code == Errc::kNotFound) {  // it restarted or was emptied
      Status rebuilt = rebuild();
      if (rebuilt.ok()) continue;
      error = std::move(rebuilt).error();
    }
    if (!wait_out(std::move(error), backoff)) return false;
  }
}

void LedgerThread::remember(const LedgerOp& op, const LedgerAnswer& answer) {
  std::visit(Overload{
                 [&](const ReserveOp& r) {
                   const auto* a = std::get_if<ReserveAnswer>(&answer);
                   if (a != nullptr && a->kind == ReserveAnswer::Kind::kGranted)
                     pending_.emplace(r.id, r);
                 },
                 [&](const SettleOp& s) {
                   const auto it = pending_.find(s.id);
                   const auto* a = std::get_if<SettleAnswer>(&answer);
                   if (it == pending_.end() || a == nullptr) return;
                   for (const ScopeId scope : it->second.scopes)
                     spent_[scope.raw()] = spent_[scope.raw()] + a->charged;
                   pending_.erase(it);
                 },
                 [&](const VoidOp& v) {
                   if (std::holds_alternative<Unit>(answer)) pending_.erase(v.id);
                 },
                 [](const ForgetOp&) {},
             },
             op);
}

}  // namespace proctor
