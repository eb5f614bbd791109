// WorkerLoop: what is given back without having begun, and an orderly goodbye.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "worker/shell/worker_loop.h"

namespace proctor {

// Nobody answers: a wrong address, a coordinator that does not run, or one that refuses our key all
// look alike from here.  Said once, and then ever more seldom.
void WorkerLoop::tell_silence(Instant now) {
  constexpr Millis kMost{600'000};
  if (now < next_silence_ || now - last_word_ < kFirstSilence) {
    if (now - last_word_ < kFirstSilence) {
      silence_pause_ = kFirstSilence;
      next_silence_ = last_word_ + kFirstSilence;
    }
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - last_word_).count();
  log::warn("no coordinator has answered at " + where() + " for " + std::to_string(seconds) +
            " s: is it running there (proctor status), and does it know this worker's key? Tried "
            "again until it answers" +
            (options_.give_up_after
                 ? " or for " + std::to_string(options_.give_up_after->count()) + " s"
                 : ""));
  silence_pause_ = std::min(silence_pause_ * 4, kMost);
  next_silence_ = now + silence_pause_;
}

// The coordinator has read the Sync of this ticket (0: it does not say which): it knows what was
// declined in it, and assigns nothing more to a worker that has no slots.
void WorkerLoop::heard(std::uint64_t ticket) {
  const auto in_it = [ticket](std::uint64_t said) {
    return said != 0 && (ticket == 0 || said <= ticket);
  };
  std::erase_if(declined_, [&](const auto& item) { return in_it(item.second); });
  drain_heard_ = drain_heard_ || in_it(drain_said_);
}

// Never started here, and never will be: the next Sync says so, and it costs nothing.
void WorkerLoop::give_back(AttemptId attempt) {
  declined_.emplace(attempt, 0);
}

// What the host offered when the attempt was assigned it offers no more: first a look at what it
// does offer, so that the Sync that gives the attempt back says that too.
void WorkerLoop::cannot_begin(const Key& key, const std::string& why) {
  log::warn("attempt " + to_string(key.second) + " is given back: " + why);
  attempts_.erase(key);
  if (key.first == campaign_) give_back(key.second);
  // The Sync that gives it back says why, whichever look at the host it comes from.
  std::vector<std::string> features = features_;
  for (std::string& lacks : executor_.lacking())
    if (std::ranges::find(features, lacks) == features.end()) features.push_back(std::move(lacks));
  tell_change(features);
  features_ = std::move(features);
  look_at_host(next_look_ = mono_now());
  leave_if_done();
}

void WorkerLoop::drain() {
  draining_ = true;
  give_back_waiting();
}

void WorkerLoop::give_back_waiting() {
  std::erase_if(attempts_, [this](const auto& item) {
    if (!item.second.waiting) return false;
    if (item.first.first == campaign_) give_back(item.first.second);
    return true;
  });
}

void WorkerLoop::leave_if_done() {
  if (end_ || moving_ || !spool_ready_) return;
  if (options_.once && 0 < ended_ && attempts_.empty() && outbox_.empty() && !draining_) {
    leaving_ = true;
    drain();
    sync();
  }
  if (!draining_ || !attempts_.empty()) return;
  const Instant now = mono_now();
  if (options_.leave_grace && !leave_by_) leave_by_ = now + *options_.leave_grace;
  const bool untold = linked_ && (!drain_heard_ || !declined_.empty());
  if ((untold || !outbox_.empty()) && (!leave_by_ || now < *leave_by_)) return say_what_waits();
  send(wire::Leave{options_.worker, boot_, outbox_.unacked()});
  if (leaving_ || !itinerary_.has_choice()) return finish(End::kLeft);
  move_on();
}

void WorkerLoop::say_what_waits() {
  if (linked_ || outbox_.empty() || std::exchange(said_what_waits_, true)) return;
  log::info(
      fmt::format("{} results wait for a coordinator that is away; SIGINT or SIGTERM leaves "
                  "now, and the next worker with this --root and --name brings them",
                  outbox_.size()));
}

}  // namespace proctor
