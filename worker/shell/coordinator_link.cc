#include "worker/shell/coordinator_link.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/host_things.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "worker/shell/coordinators.h"

namespace proctor {
namespace asio = boost::asio;

constexpr Millis kProgress{3'000};     // of silence between Syncs
constexpr std::size_t kEarlyMax = 16;  // Assigns kept while the spool is being read
constexpr Millis kSyncMin{50};
constexpr Millis kSyncMax{60'000};
// Of a campaign that there is not: to any coordinator an introduction, and nothing more.  It
// answers with its own, which another link may be serving already.
constexpr const char* kNoCampaign = "-";

CoordinatorLink::CoordinatorLink(WorkerParts& parts, Stop stop, SlotShare::Index place,
                                 Worker worker)
    : parts_(parts),
      worker_(std::move(worker)),
      stop_(std::move(stop)),
      addresses_(stop_.addresses),
      place_(place),
      last_word_(mono_now()),
      next_silence_(last_word_ + kFirstSilence),
      outbox_(
          {[this](const wire::Message& m) { return send(m); },
           [this](const Spool::Entry& entry, std::uint64_t offset, std::size_t bytes,
                  Outbox::Bytes then) {
             parts_.on_disk([=] { return Spool::read_part(entry, offset, bytes); },
                            std::move(then));
           },
           [this](const Spool::Entry& entry, const std::string& why) { set_aside(entry, why); }}) {}

void CoordinatorLink::remembers(const std::string& campaign, const std::string& address) {
  campaign_ = campaign;
  addresses_.begin_at(address);
  Result<std::vector<Spool::Entry>> entries = parts_.spool.load(campaign);
  if (!entries.ok()) return;
  for (Spool::Entry& entry : *entries) outbox_.add(std::move(entry));
  books_told_ = parts_.spool.all_results_read(campaign);
}

bool CoordinatorLink::send(const wire::Message& m) {
  return port_ && port_->send({}, wire::encode(m));
}

void CoordinatorLink::tick(Instant now) {
  if (port_ && next_sync_ <= now) sync();
  say_drain();
  if (port_) tell_silence(now);
  if (linked_ && kProgress <= now - last_said_ && 0 < held()) {
    last_said_ = now;
    send(wire::Progress{epoch_, running()});
  }
  look_around(now);
}

template <class M>
void CoordinatorLink::handle(const M& m) {
  log::warn("dropped a " + std::string(wire::kind_name(m)) + ": not for a worker");
}

template <>
void CoordinatorLink::handle(const wire::SyncReply& m) {
  if (!is_plain_name(m.campaign) || is_kept_apart(m.campaign))
    return log::warn("dropped a SyncReply: campaign " + printable(m.campaign));
  const bool other = m.campaign != id_of(campaign_);
  if (!other && m.epoch < epoch_) return;  // of a life that is over
  last_word_ = mono_now();
  refused_ = false;
  sync_interval_ = std::clamp(Millis(m.next_sync_ms), kSyncMin, kSyncMax);
  next_sync_ = std::min(next_sync_, last_word_ + sync_interval_);
  const std::optional<std::string> kept = other ? worker_.name(stop_, m.campaign) : campaign_;
  if (!kept || (other && worker_.taken(*kept))) {
    log::warn("campaign " + m.campaign + " at " + where() +
              " is served already, under another name: not twice");
    return go_away();
  }
  epoch_ = m.epoch;
  if (m.drain && !draining_) {
    log::info("draining: the coordinator asks for it");
    drain();
  }
  if (other) return enter_campaign(*kept);  // the lists spoke of what we said about another one
  obey(m);
}

void CoordinatorLink::obey(const wire::SyncReply& m) {
  heard(m.ticket);
  parts_.share.heard(place_, m.ticket, m.demand, sync_interval_);
  parts_.gate_of(campaign_)->obey(m.ticket, m.shares);
  suspend(m.suspended);
  parts_.executor.hold(m.holds);
  for (const AttemptId id : m.acked) forget(id);
  for (const AttemptId id : m.resend) outbox_.on_resend(id, m.ticket, last_word_);
  for (const AttemptId id : m.stop)
    if (const auto it = parts_.attempts.find({campaign_, id});
        it != parts_.attempts.end() && !it->second.waiting)
      it->second.watch->stop_agent(
          "budget_exceeded: dominance: much of the run's money was used without a milestone");
  for (const AttemptId id : m.cancel) cancel(id, "the coordinator does not want it any more");
}

void CoordinatorLink::enter_campaign(const std::string& campaign) {
  log::info("serving campaign " + campaign);
  if (is_kept_apart(campaign))
    log::warn("campaign " + std::string(id_of(campaign)) + " at " + where() +
              " is not the one of this id that was served before: its coordinator has another key. "
              "What is kept of them stays apart");
  suspend(false);
  // Never started, and from here their bundles do not come.
  std::erase_if(parts_.attempts, [this](const auto& item) {
    return item.second.waiting && item.first.first == campaign_;
  });
  campaign_ = campaign;
  spool_ready_ = books_told_ = false;
  done_.clear();
  declined_.clear();
  early_.clear();
  wanted_.clear();
  outbox_.clear();
  worker_.remember(campaign, where(), stop_);
  using Entries = Result<std::vector<Spool::Entry>>;
  parts_.on_disk([this, campaign] { return parts_.spool.load(campaign); },
                 [this, campaign](Entries entries) { spool_loaded(campaign, std::move(entries)); });
}

template <>
void CoordinatorLink::handle(const wire::Assign& m) {
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
    const AttemptKey key{campaign_, a.attempt};
    if (parts_.attempts.contains(key) || outbox_.holds(a.attempt) || done_.contains(a.attempt))
      continue;
    if (draining_ || limits::kSlotsMax <= parts_.attempts.size()) {
      give_back(a.attempt);
      continue;
    }
    if (declined_.contains(a.attempt)) continue;  // sent again because our word was lost
    LocalAttempt local;
    local.assignment = a;
    local.settings = m.settings;
    local.epoch = m.epoch;
    local.watch->hold()->set(suspended_);
    parts_.attempts.emplace(key, std::move(local));
  }
  if (draining_) {
    drain_said_ = 0;  // this was under way when we said it
    drain_heard_ = false;
    return sync();
  }
  start_ready();
}

void CoordinatorLink::spool_loaded(const std::string& campaign,
                                   Result<std::vector<Spool::Entry>> entries) {
  if (campaign != campaign_) return;
  if (entries.ok()) {
    for (Spool::Entry& entry : *entries) outbox_.add(std::move(entry));
    books_told_ = parts_.spool.all_results_read(campaign);
  } else {
    log::error("spool of " + campaign + ": " + entries.error().detail);
  }
  spool_ready_ = true;
  for (const wire::Assign& early : std::exchange(early_, {})) handle(early);
  worker_.changed();
  sync();  // now with everything that is not acknowledged
}

template <>
void CoordinatorLink::handle(const wire::Ack& m) {
  for (const AttemptId id : m.results) forget(id);
}

template <>
void CoordinatorLink::handle(const wire::ChunkAck& m) {
  outbox_.on_chunk_ack(m, mono_now());
}

template <>
void CoordinatorLink::handle(const wire::Cancel& m) {
  if (m.epoch != epoch_) return;
  for (const AttemptId id : m.attempts) cancel(id, m.reason);
}

template <>
void CoordinatorLink::handle(const wire::Refuse& m) {
  log::error("the coordinator refuses this worker: " + printable(m.reason, limits::kDetailBytes));
  refused_ = true;
  go_away();
}

// What runs of its campaign; another's coordinator has its own word.
void CoordinatorLink::suspend(bool suspended) {
  if (suspended != suspended_)
    log::info(suspended ? "suspending what runs, until the coordinator says otherwise"
                        : "what was suspended goes on");
  suspended_ = suspended;
  for (auto& [key, local] : parts_.attempts)
    if (key.first == campaign_) local.watch->hold()->set(suspended);
}

void CoordinatorLink::cancel(AttemptId attempt, const std::string& reason) {
  const auto it = parts_.attempts.find({campaign_, attempt});
  if (it == parts_.attempts.end()) return;
  if (it->second.waiting) {
    parts_.attempts.erase(it);
    give_back(attempt);
  } else {
    it->second.watch->cancel(reason);
  }
}

void CoordinatorLink::set_aside(const Spool::Entry& damaged, const std::string& why) {
  parts_.on_disk(
      [this, campaign = campaign_, damaged, why] {
        return parts_.spool.set_aside(campaign, damaged, why);
      },
      [this, campaign = campaign_, attempt = damaged.result.attempt](Result<Spool::Entry> entry) {
        if (campaign != campaign_) return;
        outbox_.replace(attempt, std::move(entry));
        deliver();
      });
}

void CoordinatorLink::forget(AttemptId attempt) {
  if (!outbox_.on_acked(attempt)) return;
  parts_.on_disk([this, campaign = campaign_, attempt] {
    if (const Status dropped = parts_.spool.drop(campaign, attempt); !dropped.ok()) {
      log::warn("spool: " + dropped.error().detail);
    }
  });
}

void CoordinatorLink::take(AttemptId attempt, Spool::Entry entry) {
  done_.insert(attempt);
  outbox_.add(std::move(entry));
  deliver();
}

std::uint32_t CoordinatorLink::held() const {
  if (campaign_.empty()) return 0;
  return static_cast<std::uint32_t>(std::ranges::count_if(
      parts_.attempts, [this](const auto& item) { return item.first.first == campaign_; }));
}

std::vector<wire::RunningAttempt> CoordinatorLink::running() const {
  std::vector<wire::RunningAttempt> out;
  for (const auto& [key, local] : parts_.attempts) {
    if (key.first != campaign_ || out.size() == limits::kSlotsMax) continue;
    const AttemptWatch::View view = local.watch->view();
    out.push_back({key.second, view.stage, view.sandbox_started, view.usage, view.milestones});
  }
  return out;
}

void CoordinatorLink::sync() {
  if (!spool_ready_ || !port_ || moving_) return;
  last_said_ = mono_now();
  next_sync_ = last_said_ + sync_interval_;
  wire::Sync m;
  m.worker = parts_.options.worker;
  m.boot = parts_.boot;
  m.version = std::string(kVersion);
  m.epoch_seen = epoch_;
  m.slots = draining_ ? 0 : parts_.share.says(place_);
  // Of the release, not of the host.
  m.features = {std::string(kHasToolLoop), std::string(kHasAgentTools)};
  m.features.insert(m.features.end(), parts_.features.begin(), parts_.features.end());
  // A store of many images beside a host that lacks much: what is cut off is found out again.
  if (wire::kFeaturesMax < m.features.size()) m.features.resize(wire::kFeaturesMax);
  for (std::string& denied : parts_.executor.denied(campaign_))
    if (m.features.size() < wire::kFeaturesMax) m.features.push_back(std::move(denied));
  m.running = running();
  m.unacked = outbox_.unacked();
  m.holds = parts_.executor.holds();
  // A list that is as long as it may be does not have all of them.
  if (books_told_ && m.unacked.size() < limits::kBatchItems)
    for (const BootId life : parts_.earlier)
      if (m.features.size() < wire::kFeaturesMax) m.features.push_back(wire::books_feature(life));
  if (campaign_.empty()) m.campaign = kNoCampaign;  // what is kept of it is not read yet
  if (!campaign_.empty()) {
    const RateGate::Word word = parts_.gate_of(campaign_)->ask(last_said_);
    m.ticket = word.ticket;
    m.obeyed = word.obeyed;
    m.calls = word.calls;
    m.campaign = id_of(campaign_);
    outbox_.on_sync(m.ticket);
    for (auto& [attempt, said] : declined_) {
      if (m.declined.size() == limits::kBatchItems) break;
      m.declined.push_back(attempt);
      if (said == 0) said = m.ticket;
    }
    if (draining_ && drain_said_ == 0) drain_said_ = m.ticket;
  }
  parts_.share.told(place_, m.ticket);
  introduced_ = send(m) || introduced_;
  want_missing();
}

// A worker that has not said who it is, is not heard: nothing overtakes the Sync that names it.
void CoordinatorLink::deliver() {
  if (introduced_ && !moving_) outbox_.pump(mono_now());
}

// CoordinatorLink: what its attempts need before they can start, and who sends it.

// Starts every attempt whose bundles are here and asks for those that are not.
void CoordinatorLink::start_ready() {
  std::vector<AttemptKey> ready;
  bool missing = false;
  for (const auto& [key, local] : parts_.attempts) {
    if (!local.waiting || key.first != campaign_) continue;
    bool complete = true;
    const auto need = [&](const Digest& digest, BundleCache::Kind kind) {
      if (wanted_.contains(digest)) {
        complete = false;
      } else if (!parts_.bundles.holds({campaign_, digest})) {
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
  for (const AttemptKey& key : ready) worker_.start(key);
  if (missing) want_missing();
}

void CoordinatorLink::want_missing() {
  wire::Want want;
  for (const auto& [digest, wanted] : wanted_) {
    if (!wanted.storing && want.digests.size() < limits::kBatchItems)
      want.digests.push_back(digest);
  }
  if (!want.digests.empty()) send(want);
}

template <>
void CoordinatorLink::handle(const wire::Bundle& m) {
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

void CoordinatorLink::on_bytes(const std::string& bytes) {
  if (moving_) return;
  const std::uint32_t version = wire::peek_version(bytes);
  Result<wire::Message> message = wire::decode(bytes);
  if (!message.ok()) {
    log::warn("dropped " + std::to_string(bytes.size()) + " bytes of version " +
              std::to_string(version) + ": " + printable(message.error().detail));
    return;
  }
  std::visit([this](const auto& m) { handle(m); }, *message);
  if (!moving_) deliver();
  worker_.changed();
  say_drain();
}

void CoordinatorLink::bundle_complete(const Digest& digest, std::string bytes) {
  Wanted& wanted = wanted_.at(digest);
  wanted.storing = true;
  parts_.on_disk(
      [this, campaign = campaign_, digest, kind = wanted.kind, bytes = std::move(bytes)] {
        return parts_.bundles.put(kind, {campaign, digest}, bytes);
      },
      [this, campaign = campaign_, digest](const Status& stored) {
        if (campaign != campaign_) return;
        if (stored.ok()) {
          wanted_.erase(digest);
          return start_ready();
        }
        const Error& e = stored.error();
        log::warn("bundle " + digest.short_hex() + ": " + e.detail);
        if (e.code == Errc::kInvalid) return decline(digest, e.detail);
        if (const auto again = wanted_.find(digest); again != wanted_.end())
          again->second.storing = false;  // asked for again with the next Sync
      });
}

// Its bytes are what was sent, and mean nothing to this build: a newer one wrote it.
void CoordinatorLink::decline(const Digest& digest, const std::string& detail) {
  wanted_.erase(digest);
  const std::string why =
      "worker " + std::string(kVersion) + " cannot read what the run needs: " + detail;
  for (auto& [key, local] : parts_.attempts) {
    const wire::Assignment& a = local.assignment;
    if (!local.waiting || key.first != campaign_) continue;
    if (a.contract != digest && a.method != digest && local.settings != digest) continue;
    local.waiting = false;
    parts_.on_disk(
        [this, input = parts_.input_of(key, local), why] {
          return parts_.executor.decline(input, why);
        },
        [this, key = key](Result<Spool::Entry> entry) { worker_.ended(key, std::move(entry)); });
  }
}

// CoordinatorLink: how it is connected, what is given back without having begun, and an orderly
// goodbye.

constexpr Millis kUnreachable{5'000};  // without a connection
constexpr Millis kUnanswered{10'000};  // on one, and never less than three Syncs
// Where there is no other address, the same one once more, with a socket of its own: libzmq tries
// never again after a greeting that is not its own (a proxy's error page), and a connection may
// stay open that passes nothing on.
constexpr Millis kUnreachableAlone{15'000};
constexpr Millis kUnansweredAlone{30'000};

Status CoordinatorLink::connect() {
  close();
  arrived_ = mono_now();
  sync_interval_ = limits::kSyncInterval;
  PROCTOR_TRY(wire::ZmqPort::Options port, parts_.options.port(stop_, where()));
  PROCTOR_TRY(port_,
              wire::ZmqPort::open(
                  parts_.io, parts_.zmq, std::move(port),
                  [this](wire::PeerMessage m) { on_bytes(m.bytes); },
                  [this](wire::ZmqPort::Link link, const std::string& d) { on_link(link, d); }));
  return ok_status();
}

void CoordinatorLink::close() {
  port_.reset();
  linked_ = introduced_ = moving_ = false;
  parts_.share.link_down(place_);
}

void CoordinatorLink::on_link(wire::ZmqPort::Link link, const std::string& detail) {
  switch (link) {
    case wire::ZmqPort::Link::kUp:
      log::info("connected to " + where());
      linked_ = true;
      outbox_.on_link_up();
      next_sync_ = mono_now();
      worker_.changed();  // says so, where it changes what this one is told
      if (next_sync_ <= mono_now()) sync();
      break;
    case wire::ZmqPort::Link::kDown:
      if (linked_)
        log::warn("the coordinator " + (worker_.alone ? std::string() : "at " + where() + " ") +
                  "is away; what runs goes on, results wait on disk");
      linked_ = introduced_ = false;
      parts_.share.link_down(place_);
      worker_.changed();
      break;
    case wire::ZmqPort::Link::kRefused:
      log::warn_seldom("the coordinator refused the handshake: " + detail);
      break;
    case wire::ZmqPort::Link::kRevoked:
      break;  // a ROUTER's word
  }
}

// Not from inside the port's own callback.
void CoordinatorLink::hop() {
  if (std::exchange(moving_, true)) return;
  asio::post(parts_.io, [this] {
    const Status connected = connect();
    if (connected.ok()) return;
    log::error("cannot connect to " + where() + ": " + connected.error().detail);
    addresses_.sent_away(mono_now(), worker_.grows);
    worker_.changed();
  });
}

// What was said to this coordinator was not said to the next.
void CoordinatorLink::begin_anew() {
  if (parts_.leaving) return;
  draining_ = drain_heard_ = said_what_waits_ = false;
  drain_said_ = 0;
  leave_by_.reset();
}

// Its campaign is over, or it wants us no more.
void CoordinatorLink::go_away() {
  if (std::exchange(moving_, true)) return;
  addresses_.sent_away(mono_now(), worker_.grows);
  if (!worker_.alone && !parts_.leaving)
    log::info("done at " + where() +
              (addresses_.is_over() || forgotten_ ? "" : ": asked again later"));
  asio::post(parts_.io, [this] {
    close();
    begin_anew();
    worker_.changed();
  });
}

// Results that nobody took stay in the spool, and are delivered when the coordinator answers again.
void CoordinatorLink::look_around(Instant now) {
  if (moving_) return;
  if (!port_) {
    if (parts_.leaving || forgotten_ || addresses_.rests(now)) return;
    silence_pause_ = kFirstSilence;
    next_silence_ = now + kFirstSilence;
    return hop();
  }
  const bool choice = addresses_.has_choice();
  const Millis unanswered = choice ? kUnanswered : kUnansweredAlone,
               unreachable = choice ? kUnreachable : kUnreachableAlone;
  const Millis patience = linked_ ? std::max(unanswered, 3 * sync_interval_) : unreachable;
  if (now - std::max(last_word_, arrived_) < patience) return;
  if (!choice) return hop();
  const std::string from = where();
  const bool answered = arrived_ < last_word_;
  arrived_ = now;
  if (!addresses_.next()) return;
  const std::string said = "nobody answers at " + from + ": trying " + where();
  if (answered)
    log::warn(said);
  else
    log::debug(said);
  if (!forgotten_) begin_anew();
  hop();
}

void CoordinatorLink::rename(const Stop& stop) {
  const bool moved = stop.addresses != stop_.addresses || stop.server_key != stop_.server_key;
  const std::string before = where();
  if (stop.secrets != stop_.secrets) {
    parts_.executor.forget_denied(campaign_);
    next_sync_ = mono_now();
  }
  const bool rekeyed = stop.server_key != stop_.server_key;
  stop_ = stop;
  // Whoever wrote the line says that it is the same one.
  if (rekeyed && !campaign_.empty()) worker_.remember(campaign_, before, stop_);
  if (!moved && !std::exchange(forgotten_, false)) return;
  addresses_.replace(stop.addresses);
  if (!port_ || !moved) return;
  log::info(stop_.name + " is at " + where() + " now, no more at " + before);
  begin_anew();
  hop();
}

void CoordinatorLink::not_named_any_more() {
  if (std::exchange(forgotten_, true) || !port_ || draining_) return;
  log::info("draining: " + where() + " is not among them any more");
  drain();
}

// Nobody answers: a wrong address, a coordinator that does not run, or one that refuses our key all
// look alike from here.  Said once, and then ever more seldom.
void CoordinatorLink::tell_silence(Instant now) {
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
            " s: is it running there (proctor status), does it know this worker's key, and is "
            "--server-key its own coordinator.pub? Tried again until it answers" +
            (parts_.options.give_up_after
                 ? " or for " + std::to_string(parts_.options.give_up_after->count()) + " s"
                 : ""));
  silence_pause_ = std::min(silence_pause_ * 4, kMost);
  next_silence_ = now + silence_pause_;
}

void CoordinatorLink::go_on_if_forgotten() {
  if (!suspended_) return;
  log::warn("no word from the coordinator at " + where());
  suspend(false);
}

// The coordinator has read the Sync of this ticket (0: it does not say which): it knows what was
// declined in it, and assigns nothing more to a worker that has no slots.
void CoordinatorLink::heard(std::uint64_t ticket) {
  const auto in_it = [ticket](std::uint64_t said) {
    return said != 0 && (ticket == 0 || said <= ticket);
  };
  std::erase_if(declined_, [&](const auto& item) { return in_it(item.second); });
  drain_heard_ = drain_heard_ || in_it(drain_said_);
}

void CoordinatorLink::give_back(AttemptId attempt) {
  declined_.emplace(attempt, 0);
}

void CoordinatorLink::drain() {
  draining_ = true;
  give_back_waiting();
}

// It assigns nothing more once it has heard that.
void CoordinatorLink::say_drain() {
  if (draining_ && drain_said_ == 0 && !campaign_.empty()) sync();
}

void CoordinatorLink::give_back_waiting() {
  std::erase_if(parts_.attempts, [this](const auto& item) {
    if (!item.second.waiting || item.first.first != campaign_) return false;
    give_back(item.first.second);
    return true;
  });
}

void CoordinatorLink::leave_now() {
  leave_by_ = mono_now();
}

void CoordinatorLink::leave_if_done() {
  if (moving_ || !port_ || !spool_ready_ || !draining_ || 0 < held()) return;
  const Instant now = mono_now();
  if (parts_.options.leave_grace && !leave_by_) leave_by_ = now + *parts_.options.leave_grace;
  const bool untold = linked_ && (!drain_heard_ || !declined_.empty());
  if ((untold || !outbox_.empty()) && (!leave_by_ || now < *leave_by_)) return say_what_waits();
  send(wire::Leave{parts_.options.worker, parts_.boot, outbox_.unacked()});
  go_away();
}

void CoordinatorLink::say_what_waits() {
  if (linked_ || outbox_.empty() || std::exchange(said_what_waits_, true)) return;
  log::info(
      fmt::format("{} results wait for a coordinator that is away; SIGINT or SIGTERM leaves "
                  "now, and the next worker with this --root and --name brings them",
                  outbox_.size()));
}
}  // namespace proctor
