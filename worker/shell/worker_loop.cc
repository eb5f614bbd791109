#include "worker/shell/worker_loop.h"

#include <algorithm>
#include <csignal>
#include <random>
#include <set>
#include <utility>
#include <zmq.hpp>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/wire/asio.h"
#include "worker/shell/meter_book.h"

namespace proctor {
namespace asio = boost::asio;

namespace {
constexpr Millis kTick{200};
constexpr Millis kBooks{1'000};  // between two syncs of meter books
constexpr Millis kLook{2'000};   // between two looks at what the host offers

BootId random_boot() {
  std::random_device device;
  return BootId((std::uint64_t{device()} << 32) | device());
}
}  // namespace

struct WorkerParts::Threads {
  explicit Threads(std::uint32_t slots_max) : slots(slots_max) {}
  asio::io_context io;
  zmq::context_t zmq{1};
  asio::thread_pool slots;
  asio::thread_pool disk{1};
  asio::thread_pool look{1};
};

WorkerParts::WorkerParts(WorkerLoopOptions o, RunExecutor& e, BundleCache& b, Spool& s)
    : options(std::move(o)),
      executor(e),
      bundles(b),
      spool(s),
      boot(random_boot()),
      threads(std::make_unique<Threads>(options.slots)),
      io(threads->io),
      zmq(threads->zmq),
      slots(threads->slots),
      disk(threads->disk),
      look(threads->look),
      share(options.slots) {}

WorkerParts::~WorkerParts() = default;

void WorkerParts::on_disk(std::function<void()> work) {
  asio::post(disk, std::move(work));
}

void WorkerParts::to_loop(std::function<void()> work) {
  asio::post(io, std::move(work));
}

std::shared_ptr<RateGate> WorkerParts::gate_of(const std::string& campaign) {
  std::shared_ptr<RateGate>& gate = gates[campaign];
  // Tickets begin anywhere: an answer to an earlier life of this worker is none to us.
  if (!gate) gate = std::make_shared<RateGate>(boot.raw() >> 1);
  return gate;
}

struct WorkerLoop::Waits {
  explicit Waits(asio::io_context& io) : timer(io), signals(io, SIGTERM, SIGINT) {}
  asio::steady_timer timer;
  asio::signal_set signals;
};

WorkerLoop::WorkerLoop(WorkerLoopOptions options, RunExecutor& executor, BundleCache& bundles,
                       Spool& spool)
    : parts_(std::move(options), executor, bundles, spool),
      waits_(std::make_unique<Waits>(parts_.io)),
      grows_(parts_.options.look_for_stops != nullptr) {}

// Slot and disk threads post to the loop and touch members: they end first.
WorkerLoop::~WorkerLoop() {
  for (auto& [key, local] : parts_.attempts) local.watch->shut_down();
  parts_.slots.join();
  parts_.disk.join();
  parts_.look.join();
}

CoordinatorLink& WorkerLoop::add_link(const Stop& stop) {
  CoordinatorLink::Worker worker;
  worker.changed = [this] {
    share_slots();
    leave_if_done();
  };
  worker.start = [this](const AttemptKey& key) { start(key); };
  worker.ended = [this](const AttemptKey& key, Result<Spool::Entry> entry) {
    attempt_ended(key, std::move(entry));
  };
  worker.taken = [this](const std::string& campaign) { return link_of(campaign) != nullptr; };
  const bool alone = !grows_ && parts_.options.stops.size() == 1;
  // The only one there is may change its key.
  worker.name = [this, alone](const Stop& stop_of, const std::string& id) {
    return alone ? std::optional(id) : kept_name(served_, id, who_of(stop_of.server_key));
  };
  worker.remember = [this](const std::string& campaign, const std::string& address,
                           const Stop& stop_of) {
    const ServedCampaign served{campaign, address, who_of(stop_of.server_key)};
    take(served_, served);
    parts_.on_disk([home = parts_.options.home, served] { remember_campaign(home, served); });
  };
  worker.grows = grows_;
  worker.alone = alone;
  const SlotShare::Index place = parts_.share.add({stop.name, stop.weight, stop.priority});
  links_.push_back(std::make_unique<CoordinatorLink>(parts_, stop, place, std::move(worker)));
  return *links_.back();
}

// What there is of a campaign that was served before is part of the first Sync to who had it then.
void WorkerLoop::begin_links() {
  served_ = served_campaigns(parts_.options.home);
  std::vector<ServedCampaign> served = served_;
  std::ranges::reverse(served);  // the newest first
  for (const Stop& stop : parts_.options.stops) {
    CoordinatorLink& link = add_link(stop);
    const auto it = std::ranges::find_if(served, [&](const ServedCampaign& one) {
      return std::ranges::find(stop.addresses, one.address) != stop.addresses.end() &&
             (link.is_alone() || one.who.empty() || one.who == who_of(stop.server_key)) &&
             link_of(one.campaign) == nullptr;
    });
    // Its coordinator may have another address now, and another campaign's may have this one: the
    // Sync says which it speaks of.
    if (it != served.end())
      link.remembers(it->campaign, it->address);
    else if (!grows_ && parts_.options.stops.size() == 1 && !served.empty())
      link.remembers(served.front().campaign, "");
  }
}

// The one that speaks for this campaign; null: nobody does now.
CoordinatorLink* WorkerLoop::link_of(const std::string& campaign) const {
  for (const auto& link : links_)
    if (link->campaign() == campaign && !link->is_over()) return link.get();
  return nullptr;
}

Result<WorkerLoop::End> WorkerLoop::run() {
  parts_.earlier = lives_with_books(parts_.options.meters);
  if (const Status begun = begin_life(parts_.options.meters, parts_.boot); !begun.ok())
    log::warn(
        "an attempt that has not begun when this worker is killed costs its whole "
        "reservation: " +
        begun.error().detail);
  begin_links();
  for (LeftAttempt& left : std::exchange(parts_.options.left, {})) go_on(std::move(left));
  for (const auto& link : links_) {
    const Status connected = link->connect();
    if (connected.ok()) continue;
    if (links_.size() == 1) return connected.error();
    log::error("cannot connect to " + link->where() + ": " + connected.error().detail);
  }
  parts_.features = parts_.options.features();
  began_ = mono_now();
  next_look_ = began_ + kLook;
  on_signal();
  tick();
  parts_.io.run();
  for (const auto& link : links_) link->close();
  return *end_;
}

// A coordinator that can take work is told of slots; each that is to hear another number says so.
void WorkerLoop::share_slots() {
  if (end_) return;
  const Instant now = mono_now();
  std::size_t theirs = 0;
  for (const auto& link : links_) {
    const std::uint32_t held = link->held();
    parts_.share.held(link->place(), held, now);
    parts_.share.open(link->place(), link->is_open());
    theirs += held;
  }
  parts_.share.held_by_nobody(static_cast<std::uint32_t>(parts_.attempts.size() - theirs));
  for (const SlotShare::Index place : parts_.share.share(now)) links_[place]->sync();
}

void WorkerLoop::on_signal() {
  waits_->signals.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    if (!std::exchange(parts_.leaving, true)) {
      log::info("draining: finishing what runs, starting nothing; once more to cancel it");
      leave();
    } else if (parts_.attempts.empty()) {
      for (const auto& link : links_) link->leave_now();  // results stay in the spool
    } else {
      log::info("cancelling what runs");
      for (auto& [key, local] : parts_.attempts) local.watch->shut_down();
    }
    leave_if_done();
    on_signal();
  });
}

void WorkerLoop::leave() {
  parts_.leaving = true;
  for (const auto& link : links_) link->drain();
  share_slots();  // and says so
}

// At each of its coordinators, and then altogether.
void WorkerLoop::leave_if_done() {
  if (end_) return;
  const bool idle = parts_.attempts.empty() &&
                    std::ranges::all_of(links_, [](const auto& link) { return link->is_idle(); });
  if (parts_.options.once && 0 < ended_ && idle && !parts_.leaving) leave();
  for (const auto& link : links_) link->leave_if_done();
  const auto gone = [this](const auto& link) {
    return parts_.leaving ? !link->is_here() : link->is_over();
  };
  if (grows_ && !parts_.leaving) return;
  if (!std::ranges::all_of(links_, gone)) return;
  const auto refused = [](const auto& link) { return link->was_refused(); };
  const bool by_all = !links_.empty() && std::ranges::all_of(links_, refused);
  if (!by_all && !parts_.attempts.empty()) return;
  finish(std::ranges::any_of(links_, refused) ? End::kRefused : End::kLeft);
}

bool WorkerLoop::gives_up(Instant now) {
  if (!parts_.options.give_up_after) return false;
  const Millis patience = *parts_.options.give_up_after;
  bool all = patience < now - began_;
  for (const auto& link : links_) {
    if (now - link->last_word() <= patience)
      all = false;
    else
      link->go_on_if_forgotten();
  }
  if (!all || !parts_.attempts.empty()) return false;
  log::error((links_.size() == 1 ? "no word from the coordinator at " + links_[0]->where()
                                 : std::string("no word from any coordinator")) +
             ": giving up");
  finish(End::kGaveUp);
  return true;
}

void WorkerLoop::tick() {
  if (end_) return;
  const Instant now = mono_now();
  share_slots();
  for (const auto& link : links_) link->tick(now);
  look_at_host(now);
  if (gives_up(now)) return;
  sync_books(now);
  for (const auto& link : links_) link->deliver();
  leave_if_done();
  if (end_) return;
  waits_->timer.expires_after(kTick);
  waits_->timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void WorkerLoop::sync_books(Instant now) {
  if (syncing_books_ || now < next_books_ || parts_.attempts.empty()) return;
  syncing_books_ = true;
  next_books_ = now + kBooks;
  parts_.on_disk([this] {
    parts_.executor.sync_books();
    asio::post(parts_.io, [this] { syncing_books_ = false; });
  });
}

void WorkerLoop::look_at_host(Instant now) {
  if (looking_ || now < next_look_) return;
  looking_ = true;
  asio::post(parts_.look, [this] {
    parts_.executor.look_again();
    look_for_stops();
    asio::post(parts_.io,
               [this, seen = parts_.options.features()]() mutable { host_seen(std::move(seen)); });
  });
}

// An engine that went away or came back: a coordinator must know before it gives us another run.
void WorkerLoop::host_seen(std::vector<std::string> features) {
  looking_ = false;
  next_look_ = mono_now() + kLook;
  // What was found missing since this look began, too.
  for (std::string& lacks : parts_.executor.lacking()) features.push_back(std::move(lacks));
  const bool same = features == parts_.features;
  if (!same) tell_change(features);
  parts_.features = std::move(features);
  for (const auto& link : links_)
    if (!same || link->has_declined()) link->sync();
}

void WorkerLoop::tell_change(const std::vector<std::string>& now) const {
  const auto holds = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const auto lacked = [](const std::string& f) {
    return f.starts_with(kLacks) ? describe_thing(f.substr(kLacks.size())) : std::string();
  };
  for (const std::string& f : parts_.features) {
    if (f == kDiskFull || holds(now, f)) continue;  // who looks at the disk says it
    if (const std::string thing = lacked(f); !thing.empty())
      log::info("this host has " + thing + " now");
    else
      log::warn("this host does not offer " + f + " any more");
  }
  for (const std::string& f : now) {
    if (f == kDiskFull || holds(parts_.features, f)) continue;
    if (const std::string thing = lacked(f); !thing.empty())
      log::warn("this host lacks " + thing + ": it is given no run that needs it");
    else
      log::info("this host offers " + f + " now");
  }
}

// On the thread that looks at the host.
void WorkerLoop::look_for_stops() {
  if (!parts_.options.look_for_stops) return;
  auto stops = std::make_shared<Result<std::vector<Stop>>>(parts_.options.look_for_stops());
  asio::post(parts_.io, [this, stops] { stops_seen(std::move(*stops)); });
}

void WorkerLoop::stops_seen(Result<std::vector<Stop>> stops) {
  const std::string wrong = stops.ok() ? "" : stops.error().detail;
  if (wrong != wrong_stops_ && !wrong.empty())
    log::warn("--connect-file: " + printable(wrong, limits::kDetailBytes) +
              "; what it said before holds");
  wrong_stops_ = wrong;
  if (!stops.ok() || *stops == parts_.options.stops || end_) return;
  parts_.options.stops = std::move(*stops);
  log::info("the coordinators to serve have changed: " +
            std::to_string(parts_.options.stops.size()));
  std::set<std::string> named;
  for (const Stop& stop : parts_.options.stops) {
    named.insert(stop.name);
    const auto it =
        std::ranges::find(links_, stop.name, [](const auto& link) { return link->stop().name; });
    if (it == links_.end()) {
      add_link(stop);
    } else {
      parts_.share.change((*it)->place(), {stop.name, stop.weight, stop.priority});
      (*it)->rename(stop);
    }
  }
  for (const auto& link : links_)
    if (!named.contains(link->stop().name)) link->not_named_any_more();
  share_slots();
}

void WorkerLoop::finish(End end) {
  if (end_) return;
  end_ = end;
  // Not from inside a port's own callback.
  asio::post(parts_.io, [this] { parts_.io.stop(); });
}

// WorkerLoop: from an attempt whose bundles are here to its spooled result.

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
