// WorkerLoop: which coordinator it is connected to, and when it goes to another.
#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/shell/worker_loop.h"

namespace proctor {

namespace {

constexpr const char* kLast = "last-campaign";  // in the worker's home: address, campaign
constexpr Millis kUnreachable{5'000};           // without a connection
constexpr Millis kUnanswered{10'000};           // on one, and never less than three Syncs

}  // namespace

// In some versions the campaign stands alone.
std::string last_campaign(const fs::path& home) {
  const Result<std::string> last = read_file(home / kLast, limits::kDetailBytes);
  if (!last.ok()) return {};
  const std::string name = last->substr(last->rfind('\n') + 1);
  return is_plain_name(name) ? name : "";
}

std::string last_address(const fs::path& home) {
  const Result<std::string> last = read_file(home / kLast, limits::kDetailBytes);
  return last.ok() ? last->substr(0, last->find('\n')) : std::string();
}

void remember_campaign(const fs::path& home, const std::string& campaign,
                       const std::string& address) {
  if (const Status kept = write_file(home / kLast, address + "\n" + campaign); !kept.ok())
    log::warn("remember the campaign: " + kept.error().detail);
}

std::string WorkerLoop::where() const {
  return itinerary_.at() == nullptr ? "any address" : itinerary_.address();
}

// kInvalid, kUnavailable; nothing to do where there is nobody to go to.
Status WorkerLoop::connect() {
  port_.reset();
  linked_ = introduced_ = moving_ = false;
  arrived_ = mono_now();
  sync_interval_ = limits::kSyncInterval;
  if (itinerary_.at() == nullptr) return ok_status();
  PROCTOR_TRY(wire::ZmqPort::Options port, options_.port(*itinerary_.at(), itinerary_.address()));
  PROCTOR_TRY(port_,
              wire::ZmqPort::open(
                  io_, zmq_, std::move(port), [this](wire::PeerMessage m) { on_bytes(m.bytes); },
                  [this](wire::ZmqPort::Link link, const std::string& d) { on_link(link, d); }));
  return ok_status();
}

void WorkerLoop::on_link(wire::ZmqPort::Link link, const std::string& detail) {
  switch (link) {
    case wire::ZmqPort::Link::kUp:
      log::info("connected to " + where());
      linked_ = true;
      outbox_.on_link_up();
      sync();
      break;
    case wire::ZmqPort::Link::kDown:
      if (linked_) log::warn("the coordinator is away; what runs goes on, results wait on disk");
      linked_ = introduced_ = false;
      break;
    case wire::ZmqPort::Link::kRefused:
      log::error("the coordinator refused the handshake: " + detail);
      break;
    case wire::ZmqPort::Link::kRevoked:
      break;  // a ROUTER's word
  }
}

// Not from inside the port's own callback.
void WorkerLoop::hop() {
  if (std::exchange(moving_, true)) return;
  boost::asio::post(io_, [this] {
    if (end_) return;
    const std::string to = where();
    if (const Status connected = connect(); connected.ok()) return;
    log::error("cannot connect to " + to);
    itinerary_.sent_away(mono_now());
  });
}

// What was said to this coordinator was not said to the next.
void WorkerLoop::begin_anew() {
  if (leaving_) return;
  draining_ = drain_heard_ = said_what_waits_ = false;
  drain_said_ = 0;
  leave_by_.reset();
}

// Its campaign is over, or it wants us no more.
void WorkerLoop::move_on() {
  begin_anew();
  const std::string from = where();
  itinerary_.sent_away(mono_now());
  if (itinerary_.is_over()) return finish(refused_ ? End::kRefused : End::kLeft);
  log::info("done at " + from +
            (itinerary_.at() == nullptr ? ": waiting for another coordinator"
                                        : ": going on to " + where()));
  hop();
}

// What runs belongs to its own campaign, so then only other addresses of that one are tried.
// Results that nobody took stay in the spool, and are delivered when its coordinator answers again.
void WorkerLoop::look_around(Instant now) {
  if (end_ || moving_) return;
  if (!port_) {
    if (itinerary_.look(now)) hop();
    return;
  }
  if (!itinerary_.has_choice()) return;
  const Millis patience = linked_ ? std::max(kUnanswered, 3 * sync_interval_) : kUnreachable;
  if (now - std::max(last_word_, arrived_) < patience) return;
  const std::string from = where();
  const bool answered = arrived_ < last_word_;
  arrived_ = now;
  if (!itinerary_.silent(now, !attempts_.empty())) return;
  const std::string said = "nobody answers at " + from + ": trying " + where();
  if (answered)
    log::warn(said);
  else
    log::debug(said);
  begin_anew();
  hop();
}

// On the thread that looks at the host.
void WorkerLoop::look_for_stops() {
  if (!options_.look_for_stops) return;
  auto stops = std::make_shared<Result<std::vector<Stop>>>(options_.look_for_stops());
  boost::asio::post(io_, [this, stops] { stops_seen(std::move(*stops)); });
}

void WorkerLoop::stops_seen(Result<std::vector<Stop>> stops) {
  const std::string wrong = stops.ok() ? "" : stops.error().detail;
  if (wrong != wrong_stops_ && !wrong.empty())
    log::warn("--connect-file: " + printable(wrong, limits::kDetailBytes) +
              "; what it said before holds");
  wrong_stops_ = wrong;
  if (!stops.ok() || *stops == options_.stops) return;
  options_.stops = *stops;
  log::info("the coordinators to serve have changed: " + std::to_string(stops->size()));
  if (itinerary_.replace(std::move(*stops)) || draining_) return;
  log::info("draining: " + where() + " is not among them any more");
  drain();
  sync();
}

// Slots that no attempt of a campaign we have left takes.
std::uint32_t WorkerLoop::free_of_others() const {
  const auto others = static_cast<std::uint32_t>(std::ranges::count_if(
      attempts_, [this](const auto& item) { return item.first.first != campaign_; }));
  return options_.slots - std::min(options_.slots, others);
}

}  // namespace proctor
