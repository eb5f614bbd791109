// CoordinatorLink: how it is connected, what is given back without having begun, and an orderly
// goodbye.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/wire/asio.h"
#include "worker/shell/coordinator_link.h"

namespace proctor {

namespace asio = boost::asio;

namespace {

constexpr Millis kUnreachable{5'000};  // without a connection
constexpr Millis kUnanswered{10'000};  // on one, and never less than three Syncs
// Where there is no other address, the same one once more, with a socket of its own: libzmq tries
// never again after a greeting that is not its own (a proxy's error page), and a connection may
// stay open that passes nothing on.
constexpr Millis kUnreachableAlone{15'000};
constexpr Millis kUnansweredAlone{30'000};

}  // namespace

Status CoordinatorLink::connect() {
  port_.reset();
  linked_ = introduced_ = moving_ = false;
  arrived_ = mono_now();
  sync_interval_ = limits::kSyncInterval;
  parts_.share.link_down(place_);
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
