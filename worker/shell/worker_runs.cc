// WorkerLoop: from an attempt whose bundles are here to its spooled result.
#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/wire/asio.h"
#include "worker/shell/worker_loop.h"

namespace proctor {

namespace asio = boost::asio;

AttemptInput WorkerParts::input_of(const AttemptKey& key, const LocalAttempt& local) {
  AttemptInput input;
  input.campaign = key.first;
  input.epoch = local.epoch;
  input.assignment = local.assignment;
  input.settings_digest = local.settings;
  input.gate = gate_of(key.first);
  input.left = local.left;
  return input;
}

void WorkerLoop::start(const AttemptKey& key) {
  LocalAttempt& local = parts_.attempts.at(key);
  local.waiting = false;
  AttemptInput input = parts_.input_of(key, local);
  // One that an earlier life began has its own already; anything else has a coordinator.
  if (const CoordinatorLink* link = link_of(key.first); link != nullptr)
    input.secrets = link->stop().secrets;
  asio::post(parts_.slots, [this, key, input = std::move(input), settings = local.settings,
                            watch = local.watch]() mutable {
    // Nothing: given back.
    const auto work = [&]() -> Result<std::optional<Spool::Entry>> {
      BundleCache& bundles = parts_.bundles;
      PROCTOR_TRY(input.contract, bundles.contract({key.first, input.assignment.contract}));
      PROCTOR_TRY(input.method, bundles.method({key.first, input.assignment.method}));
      PROCTOR_TRY(input.settings, bundles.settings({key.first, settings}));
      if (Status can = parts_.executor.can_begin(input); !can.ok()) {
        asio::post(parts_.io, [this, key, why = can.error().detail] { cannot_begin(key, why); });
        return std::optional<Spool::Entry>();
      }
      PROCTOR_TRY(Spool::Entry entry, parts_.executor.execute(input, *watch));
      return std::optional(std::move(entry));
    };
    Result<std::optional<Spool::Entry>> done = work();
    if (done.ok() && !done->has_value()) return;
    auto entry = std::make_shared<Result<Spool::Entry>>(
        done.ok() ? Result<Spool::Entry>(std::move(**done)) : Result<Spool::Entry>(done.error()));
    asio::post(parts_.io, [this, key, entry] { attempt_ended(key, std::move(*entry)); });
  });
}

// Part of the first Sync to who has its campaign: nobody must take it for lost.
void WorkerLoop::go_on(LeftAttempt left) {
  const AttemptKey key{left.checkpoint.campaign, left.checkpoint.assignment.attempt};
  log::info("attempt " + to_string(key.second) + " was left by an earlier life: going on with it");
  LocalAttempt local;
  local.assignment = left.checkpoint.assignment;
  local.settings = left.checkpoint.settings;
  local.epoch = left.checkpoint.epoch;
  local.watch->enter(left.checkpoint.stage());
  local.watch->sandbox_started();
  local.watch->meter(left.book.so_far.usage, 0);
  local.left = std::make_shared<const LeftAttempt>(std::move(left));
  parts_.attempts.emplace(key, std::move(local));
  start(key);
}

void WorkerLoop::attempt_ended(const AttemptKey& key, Result<Spool::Entry> entry) {
  parts_.attempts.erase(key);
  CoordinatorLink* link = link_of(key.first);  // null: it waits in that campaign's spool
  // Before its result goes out: who is to get less does not fill the slot again behind it.
  share_slots();
  if (!entry.ok()) {
    // No result that would survive us: the next Sync no longer lists the attempt, which says it.
    log::error("attempt " + to_string(key.second) + ": " + entry.error().detail);
    if (link != nullptr) link->sync();
  } else {
    ++ended_;
    if (link != nullptr) link->take(key.second, std::move(entry).value());
  }
  leave_if_done();
}

// What the host offered when the attempt was assigned it offers no more: first a look at what it
// does offer, so that the Sync that gives the attempt back says that too.
void WorkerLoop::cannot_begin(const AttemptKey& key, const std::string& why) {
  log::warn("attempt " + to_string(key.second) + " is given back: " + why);
  parts_.attempts.erase(key);
  if (CoordinatorLink* link = link_of(key.first); link != nullptr) link->give_back(key.second);
  // The Sync that gives it back says why, whichever look at the host it comes from.
  std::vector<std::string> features = parts_.features;
  for (std::string& lacks : parts_.executor.lacking())
    if (std::ranges::find(features, lacks) == features.end()) features.push_back(std::move(lacks));
  tell_change(features);
  parts_.features = std::move(features);
  look_at_host(next_look_ = mono_now());
  leave_if_done();
}

}  // namespace proctor
