#include "worker/shell/worker_loop.h"

#include <algorithm>
#include <csignal>
#include <random>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/wire/books.h"
#include "common/wire/bounds.h"
#include "common/wire/codec.h"
#include "worker/shell/lives.h"

namespace proctor {

namespace asio = boost::asio;

namespace {

constexpr Millis kTick{200};
constexpr Millis kProgress{3'000};     // of silence between Syncs
constexpr Millis kBooks{1'000};        // between two syncs of meter books
constexpr Millis kLook{2'000};         // between two looks at what the host offers
constexpr std::size_t kEarlyMax = 16;  // Assigns kept while the spool is being read
constexpr Millis kSyncMin{50};
constexpr Millis kSyncMax{60'000};

BootId random_boot() {
  std::random_device device;
  return BootId((std::uint64_t{device()} << 32) | device());
}

}  // namespace

WorkerLoop::WorkerLoop(WorkerLoopOptions options, RunExecutor& executor, BundleCache& bundles,
                       Spool& spool)
    : options_(std::move(options)),
      itinerary_(options_.stops, options_.look_for_stops != nullptr),
      executor_(executor),
      bundles_(bundles),
      spool_(spool),
      boot_(random_boot()),
      timer_(io_),
      signals_(io_, SIGTERM, SIGINT),
      slots_(options_.slots),
      outbox_(
          {[this](const wire::Message& m) { return send(m); },
           [this](const Spool::Entry& entry, std::uint64_t offset, std::size_t bytes,
                  Outbox::Bytes then) {
             on_disk([this, entry, offset, bytes, then = std::move(then)] {
               auto part =
                   std::make_shared<Result<std::string>>(Spool::read_part(entry, offset, bytes));
               asio::post(io_, [then, part] { then(std::move(*part)); });
             });
           },
           [this](const Spool::Entry& entry, const std::string& why) { set_aside(entry, why); }}) {}

// Slot and disk threads post to io_ and touch members: they end first.
WorkerLoop::~WorkerLoop() {
  for (auto& [key, local] : attempts_) local.watch->shut_down();
  slots_.join();
  disk_.join();
  look_.join();
}

void WorkerLoop::on_disk(std::function<void()> work) {
  asio::post(disk_, std::move(work));
}

bool WorkerLoop::send(const wire::Message& m) {
  return port_ && port_->send({}, wire::encode(m));
}

Result<WorkerLoop::End> WorkerLoop::run() {
  // What there is of the campaign served last is part of the first Sync already, so that nobody
  // takes it for lost.  Its coordinator may have another address now, and another campaign's may
  // have this one: the Sync says which it speaks of.
  earlier_ = lives_with_books(options_.meters);
  if (const Status begun = begin_life(options_.meters, boot_); !begun.ok())
    log::warn(
        "an attempt that has not begun when this worker is killed costs its whole "
        "reservation: " +
        begun.error().detail);
  campaign_ = last_campaign(options_.home);
  if (!campaign_.empty()) {
    Result<std::vector<Spool::Entry>> entries = spool_.load(campaign_);
    if (entries.ok()) {
      for (Spool::Entry& entry : *entries) outbox_.add(std::move(entry));
      books_told_ = spool_.all_results_read(campaign_);
    }
    for (LeftAttempt& left : std::exchange(options_.left, {})) go_on(std::move(left));
  }
  itinerary_.begin_at(last_address(options_.home));
  PROCTOR_CHECK_OK(connect());
  features_ = options_.features();
  last_word_ = mono_now();
  next_look_ = last_word_ + kLook;
  next_silence_ = last_word_ + kFirstSilence;
  on_signal();
  tick();
  io_.run();
  port_.reset();  // flushes what was queued, a Leave above all
  return *end_;
}

void WorkerLoop::on_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    leaving_ = true;
    if (!draining_) {
      log::info("draining: finishing what runs, starting nothing; once more to cancel it");
      drain();
      sync();
    } else if (attempts_.empty()) {
      leave_by_ = mono_now();  // results stay in the spool
    } else {
      log::info("cancelling what runs");
      for (auto& [key, local] : attempts_) local.watch->shut_down();
    }
    leave_if_done();
    on_signal();
  });
}

void WorkerLoop::tick() {
  if (end_) return;
  const Instant now = mono_now();
  if (next_sync_ <= now) sync();
  tell_silence(now);
  look_at_host(now);
  if (linked_ && kProgress <= now - last_said_ && !attempts_.empty()) {
    last_said_ = now;
    send(wire::Progress{epoch_, running()});
  }
  if (options_.give_up_after && *options_.give_up_after < now - last_word_) {
    const std::string unheard = "no word from the coordinator at " + where();
    if (attempts_.empty()) {
      log::error(unheard + ": giving up");
      return finish(End::kGaveUp);
    }
    if (suspended_) {  // nobody may ever come: what is paid for is finished, and then we leave
      log::warn(unheard);
      suspend(false);
    }
  }
  sync_books(now);
  deliver();
  leave_if_done();
  look_around(now);
  if (end_) return;
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void WorkerLoop::sync_books(Instant now) {
  if (syncing_books_ || now < next_books_ || attempts_.empty()) return;
  syncing_books_ = true;
  next_books_ = now + kBooks;
  on_disk([this] {
    executor_.sync_books();
    asio::post(io_, [this] { syncing_books_ = false; });
  });
}

void WorkerLoop::look_at_host(Instant now) {
  if (looking_ || now < next_look_) return;
  looking_ = true;
  asio::post(look_, [this] {
    executor_.look_again();
    look_for_stops();
    asio::post(io_, [this, seen = options_.features()]() mutable { host_seen(std::move(seen)); });
  });
}

// An engine that went away or came back: the coordinator must know before it gives us another run.
void WorkerLoop::host_seen(std::vector<std::string> features) {
  looking_ = false;
  next_look_ = mono_now() + kLook;
  // What was found missing since this look began, too.
  for (std::string& lacks : executor_.lacking()) features.push_back(std::move(lacks));
  if (features == features_) {
    if (!declined_.empty()) sync();
    return;
  }
  tell_change(features);
  features_ = std::move(features);
  sync();
}

void WorkerLoop::tell_change(const std::vector<std::string>& now) const {
  const auto holds = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const auto lacked = [](const std::string& f) {
    return f.starts_with(kLacks) ? describe_thing(f.substr(kLacks.size())) : std::string();
  };
  for (const std::string& f : features_) {
    if (holds(now, f)) continue;
    if (const std::string thing = lacked(f); !thing.empty())
      log::info("this host has " + thing + " now");
    else
      log::warn("this host does not offer " + f + " any more");
  }
  for (const std::string& f : now) {
    if (holds(features_, f)) continue;
    if (const std::string thing = lacked(f); !thing.empty())
      log::warn("this host lacks " + thing + ": it is given no run that needs it");
    else
      log::info("this host offers " + f + " now");
  }
}

void WorkerLoop::finish(End end) {
  if (end_) return;
  end_ = end;
  // Not from inside the port's own callback.
  asio::post(io_, [this] { io_.stop(); });
}

void WorkerLoop::on_bytes(const std::string& bytes) {
  if (end_ || moving_) return;
  const std::uint32_t version = wire::peek_version(bytes);
  Result<wire::Message> message = wire::decode(bytes);
  if (!message.ok()) {
    log::warn("dropped " + std::to_string(bytes.size()) + " bytes of version " +
              std::to_string(version) + ": " + printable(message.error().detail));
    return;
  }
  std::visit([this](const auto& m) { handle(m); }, *message);
  if (end_ || moving_) return;
  deliver();
  leave_if_done();
}

template <class Other>
void WorkerLoop::handle(const Other& m) {
  log::warn("dropped a " + std::string(wire::kind_name(m)) + ": not for a worker");
}

void WorkerLoop::handle(const wire::SyncReply& m) {
  if (!is_plain_name(m.campaign))
    return log::warn("dropped a SyncReply: campaign " + printable(m.campaign));
  if (m.campaign == campaign_ && m.epoch < epoch_) return;  // of a life that is over
  last_word_ = mono_now();
  sync_interval_ = std::clamp(Millis(m.next_sync_ms), kSyncMin, kSyncMax);
  next_sync_ = std::min(next_sync_, last_word_ + sync_interval_);
  const bool other = m.campaign != campaign_;
  epoch_ = m.epoch;
  if (m.drain && !draining_) {
    log::info("draining: the coordinator asks for it");
    drain();
  }
  if (other)
    return enter_campaign(m.campaign);  // the lists spoke of what we said about another one
  heard(m.ticket);
  gate_of(campaign_)->obey(m.ticket, m.shares);
  suspend(m.suspended);
  for (const AttemptId id : m.acked) forget(id);
  for (const AttemptId id : m.resend) outbox_.on_resend(id, m.ticket, last_word_);
  for (const AttemptId id : m.stop)
    if (const auto it = attempts_.find({campaign_, id});
        it != attempts_.end() && !it->second.waiting)
      it->second.watch->stop_agent(
          "budget_exceeded: dominance: much of the run's money was used without a milestone");
  for (const AttemptId id : m.cancel) cancel(id, "the coordinator does not want it any more");
  if (draining_ && drain_said_ == 0) sync();  // it assigns nothing more once it has heard that
}

void WorkerLoop::enter_campaign(const std::string& campaign) {
  log::info("serving campaign " + campaign);
  suspend(false);
  campaign_ = campaign;
  spool_ready_ = books_told_ = false;
  done_.clear();
  declined_.clear();
  early_.clear();
  wanted_.clear();
  // Never started, and from here their bundles do not come.
  std::erase_if(attempts_, [](const auto& item) { return item.second.waiting; });
  outbox_.clear();
  on_disk([this, campaign, at = where()] {
    remember_campaign(options_.home, campaign, at);
    auto entries = std::make_shared<Result<std::vector<Spool::Entry>>>(spool_.load(campaign));
    asio::post(io_, [this, campaign, entries] { spool_loaded(campaign, std::move(*entries)); });
  });
}

void WorkerLoop::spool_loaded(const std::string& campaign,
                              Result<std::vector<Spool::Entry>> entries) {
  if (campaign != campaign_) return;
  if (entries.ok()) {
    for (Spool::Entry& entry : *entries) outbox_.add(std::move(entry));
    books_told_ = spool_.all_results_read(campaign);
  } else {
    log::error("spool of " + campaign + ": " + entries.error().detail);
  }
  spool_ready_ = true;
  for (const wire::Assign& early : std::exchange(early_, {})) handle(early);
  sync();  // now with everything that is not acknowledged
}

void WorkerLoop::handle(const wire::Assign& m) {
  if (m.epoch == epoch_ && !spool_ready_ && early_.size() < kEarlyMax) {
    early_.push_back(m);  // it may name attempts whose results are in the spool
    return;
  }
  if (m.epoch != epoch_ || campaign_.empty() || !spool_ready_) {
    log::warn("dropped an Assign of epoch " + std::to_string(m.epoch.raw()) + "; ours is " +
              std::to_string(epoch_.raw()));
    if (epoch_ < m.epoch) sync();
    return;
  }
  for (const wire::Assignment& a : m.runs) {
    const Key key{campaign_, a.attempt};
    if (attempts_.contains(key) || outbox_.holds(a.attempt) || done_.contains(a.attempt)) continue;
    if (draining_ || limits::kSlotsMax <= attempts_.size()) {
      give_back(a.attempt);
      continue;
    }
    if (declined_.contains(a.attempt)) continue;  // sent again because our word was lost
    Local local;
    local.assignment = a;
    local.settings = m.settings;
    local.epoch = m.epoch;
    local.watch->hold()->set(suspended_);
    attempts_.emplace(key, std::move(local));
  }
  if (draining_) {
    drain_said_ = 0;  // this was under way when we said it
    drain_heard_ = false;
    return sync();
  }
  start_ready();
}

void WorkerLoop::handle(const wire::Ack& m) {
  for (const AttemptId id : m.results) forget(id);
}

void WorkerLoop::handle(const wire::ChunkAck& m) {
  outbox_.on_chunk_ack(m, mono_now());
}

void WorkerLoop::handle(const wire::Cancel& m) {
  if (m.epoch != epoch_) return;
  for (const AttemptId id : m.attempts) cancel(id, m.reason);
}

void WorkerLoop::handle(const wire::Refuse& m) {
  log::error("the coordinator refuses this worker: " + printable(m.reason, limits::kDetailBytes));
  refused_ = true;
  if (leaving_ || !itinerary_.has_choice()) return finish(End::kRefused);
  move_on();
}

// Of the present campaign; another one's coordinator is not here to say anything.
void WorkerLoop::suspend(bool suspended) {
  if (suspended != suspended_)
    log::info(suspended ? "suspending what runs, until the coordinator says otherwise"
                        : "what was suspended goes on");
  suspended_ = suspended;
  for (auto& [key, local] : attempts_)
    local.watch->hold()->set(suspended && key.first == campaign_);
}

void WorkerLoop::cancel(AttemptId attempt, const std::string& reason) {
  const auto it = attempts_.find({campaign_, attempt});
  if (it == attempts_.end()) return;
  if (it->second.waiting) {
    attempts_.erase(it);
    give_back(attempt);
  } else {
    it->second.watch->cancel(reason);
  }
}

void WorkerLoop::set_aside(const Spool::Entry& damaged, const std::string& why) {
  on_disk([this, campaign = campaign_, damaged, why] {
    auto entry = std::make_shared<Result<Spool::Entry>>(spool_.set_aside(campaign, damaged, why));
    asio::post(io_, [this, campaign, attempt = damaged.result.attempt, entry] {
      if (campaign != campaign_) return;
      outbox_.replace(attempt, std::move(*entry));
      deliver();
    });
  });
}

void WorkerLoop::forget(AttemptId attempt) {
  if (!outbox_.on_acked(attempt)) return;
  on_disk([this, campaign = campaign_, attempt] {
    if (const Status dropped = spool_.drop(campaign, attempt); !dropped.ok()) {
      log::warn("spool: " + dropped.error().detail);
    }
  });
}

std::vector<wire::RunningAttempt> WorkerLoop::running() const {
  std::vector<wire::RunningAttempt> out;
  for (const auto& [key, local] : attempts_) {
    if (key.first != campaign_ || out.size() == limits::kSlotsMax) continue;
    const AttemptWatch::View view = local.watch->view();
    out.push_back({key.second, view.stage, view.sandbox_started, view.usage, view.milestones});
  }
  return out;
}

std::shared_ptr<RateGate> WorkerLoop::gate_of(const std::string& campaign) {
  std::shared_ptr<RateGate>& gate = gates_[campaign];
  // Tickets begin anywhere: an answer to an earlier life of this worker is none to us.
  if (!gate) gate = std::make_shared<RateGate>(boot_.raw() >> 1);
  return gate;
}

void WorkerLoop::sync() {
  if (!spool_ready_ || end_) return;
  last_said_ = mono_now();
  next_sync_ = last_said_ + sync_interval_;
  wire::Sync m;
  m.worker = options_.worker;
  m.boot = boot_;
  m.version = std::string(kVersion);
  m.epoch_seen = epoch_;
  m.slots = draining_ ? 0 : free_of_others();
  m.features = features_;
  m.running = running();
  m.unacked = outbox_.unacked();
  // A list that is as long as it may be does not have all of them.
  if (books_told_ && m.unacked.size() < limits::kBatchItems)
    for (const BootId life : earlier_)
      if (m.features.size() < wire::kFeaturesMax) m.features.push_back(wire::books_feature(life));
  if (!campaign_.empty()) {
    const RateGate::Word word = gate_of(campaign_)->ask(last_said_);
    m.ticket = word.ticket;
    m.obeyed = word.obeyed;
    m.calls = word.calls;
    m.campaign = campaign_;
    outbox_.on_sync(m.ticket);
    for (auto& [attempt, said] : declined_) {
      if (m.declined.size() == limits::kBatchItems) break;
      m.declined.push_back(attempt);
      if (said == 0) said = m.ticket;
    }
    if (draining_ && drain_said_ == 0) drain_said_ = m.ticket;
  }
  introduced_ = send(m) || introduced_;
  want_missing();
}

// Whoever has not said who he is, is not heard: nothing overtakes the Sync that names it.
void WorkerLoop::deliver() {
  if (introduced_) outbox_.pump(mono_now());
}

}  // namespace proctor
