// WorkerLoop: from an assignment to a spooled result: bundles, slots, and what comes back.
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/version.h"
#include "worker/shell/worker_loop.h"

namespace proctor {

namespace asio = boost::asio;

// Starts every attempt whose bundles are here and asks for those that are not.
void WorkerLoop::start_ready() {
  std::vector<Key> ready;
  bool missing = false;
  for (const auto& [key, local] : attempts_) {
    if (!local.waiting || key.first != campaign_) continue;
    bool complete = true;
    const auto need = [&](const Digest& digest, BundleCache::Kind kind) {
      if (wanted_.contains(digest)) {
        complete = false;
      } else if (!bundles_.holds({campaign_, digest})) {
        complete = false;
        missing = true;
        wanted_[digest].kind = kind;
      }
    };
    need(local.assignment.contract, BundleCache::Kind::kContract);
    need(local.assignment.method, BundleCache::Kind::kMethod);
    need(local.settings, BundleCache::Kind::kSettings);
    if (complete) ready.push_back(key);
  }
  for (const Key& key : ready) start(key);
  if (missing) want_missing();
}

void WorkerLoop::want_missing() {
  wire::Want want;
  for (const auto& [digest, wanted] : wanted_) {
    if (!wanted.storing && want.digests.size() < limits::kBatchItems)
      want.digests.push_back(digest);
  }
  if (!want.digests.empty()) send(want);
}

void WorkerLoop::handle(const wire::Bundle& m) {
  const auto it = wanted_.find(m.digest);
  if (it == wanted_.end() || it->second.storing) return;  // not asked for, or here already
  Wanted& wanted = it->second;
  if (m.total == 0) return bundle_complete(m.digest, m.bytes);
  // In order: the coordinator sends parts one after the other on one connection.  A gap means a
  // lost one; the next Sync asks again.
  if (m.offset == 0) wanted.parts.clear();
  if (m.offset != wanted.parts.size() || limits::kContractBundleBytes < m.total) return;
  wanted.parts += m.bytes;
  if (m.total < wanted.parts.size()) {
    wanted.parts.clear();
  } else if (wanted.parts.size() == m.total) {
    bundle_complete(m.digest, std::exchange(wanted.parts, {}));
  }
}

void WorkerLoop::bundle_complete(const Digest& digest, std::string bytes) {
  Wanted& wanted = wanted_.at(digest);
  wanted.storing = true;
  on_disk([this, campaign = campaign_, digest, kind = wanted.kind, bytes = std::move(bytes)] {
    auto stored = std::make_shared<Status>(bundles_.put(kind, {campaign, digest}, bytes));
    asio::post(io_, [this, digest, stored] {
      if (stored->ok()) {
        wanted_.erase(digest);
        return start_ready();
      }
      const Error& e = stored->error();
      log::warn("bundle " + digest.short_hex() + ": " + e.detail);
      if (e.code == Errc::kInvalid) return decline(digest, e.detail);
      if (const auto again = wanted_.find(digest); again != wanted_.end())
        again->second.storing = false;  // asked for again with the next Sync
    });
  });
}

// Its bytes are what was sent, and mean nothing to this build: a newer one wrote it.
void WorkerLoop::decline(const Digest& digest, const std::string& detail) {
  wanted_.erase(digest);
  const std::string why =
      "worker " + std::string(kVersion) + " cannot read what the run needs: " + detail;
  for (auto& [key, local] : attempts_) {
    const wire::Assignment& a = local.assignment;
    if (!local.waiting || key.first != campaign_) continue;
    if (a.contract != digest && a.method != digest && local.settings != digest) continue;
    local.waiting = false;
    on_disk([this, key, input = input_of(key, local), why] {
      auto entry = std::make_shared<Result<Spool::Entry>>(executor_.decline(input, why));
      asio::post(io_, [this, key, entry] { attempt_ended(key, std::move(*entry)); });
    });
  }
}

AttemptInput WorkerLoop::input_of(const Key& key, const Local& local) {
  AttemptInput input;
  input.campaign = key.first;
  input.epoch = local.epoch;
  input.assignment = local.assignment;
  input.settings_digest = local.settings;
  input.gate = gate_of(key.first);
  input.left = local.left;
  return input;
}

void WorkerLoop::start(const Key& key) {
  Local& local = attempts_.at(key);
  local.waiting = false;
  asio::post(slots_, [this, key, input = input_of(key, local), settings = local.settings,
                      watch = local.watch]() mutable {
    // Nothing: given back.
    const auto work = [&]() -> Result<std::optional<Spool::Entry>> {
      PROCTOR_TRY(input.contract, bundles_.contract({key.first, input.assignment.contract}));
      PROCTOR_TRY(input.method, bundles_.method({key.first, input.assignment.method}));
      PROCTOR_TRY(input.settings, bundles_.settings({key.first, settings}));
      if (Status can = executor_.can_begin(input); !can.ok()) {
        asio::post(io_, [this, key, why = can.error().detail] { cannot_begin(key, why); });
        return std::optional<Spool::Entry>();
      }
      PROCTOR_TRY(Spool::Entry entry, executor_.execute(input, *watch));
      return std::optional(std::move(entry));
    };
    Result<std::optional<Spool::Entry>> done = work();
    if (done.ok() && !done->has_value()) return;
    auto entry = std::make_shared<Result<Spool::Entry>>(
        done.ok() ? Result<Spool::Entry>(std::move(**done)) : Result<Spool::Entry>(done.error()));
    asio::post(io_, [this, key, entry] { attempt_ended(key, std::move(*entry)); });
  });
}

// Part of the first Sync: nobody must take it for lost.
void WorkerLoop::go_on(LeftAttempt left) {
  const Key key{campaign_, left.checkpoint.assignment.attempt};
  log::info("attempt " + to_string(key.second) + " was left by an earlier life: going on with it");
  Local local;
  local.assignment = left.checkpoint.assignment;
  local.settings = left.checkpoint.settings;
  local.epoch = left.checkpoint.epoch;
  local.watch->enter(left.checkpoint.stage());
  local.watch->sandbox_started();
  local.watch->meter(left.book.so_far.usage, 0);
  local.left = std::make_shared<const LeftAttempt>(std::move(left));
  attempts_.emplace(key, std::move(local));
  start(key);
}

void WorkerLoop::attempt_ended(const Key& key, Result<Spool::Entry> entry) {
  attempts_.erase(key);
  if (!entry.ok()) {
    // No result that would survive us: the next Sync no longer lists the attempt, which says it.
    log::error("attempt " + to_string(key.second) + ": " + entry.error().detail);
    sync();
  } else {
    ++ended_;
    if (key.first == campaign_) {  // else it waits in that campaign's spool
      done_.insert(key.second);
      outbox_.add(std::move(entry).value());
      deliver();
    }
  }
  leave_if_done();
}

}  // namespace proctor
