#include "common/wire/zap.h"

#include <array>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/base/text.h"

namespace proctor::wire {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kFramesMax = 16;  // a request has 7; more are read away and not kept

// RFC 27: version, request id, domain, address, identity, mechanism, credentials...
struct Request {
  std::vector<std::string> frames;
  std::string_view frame(std::size_t i) const {
    return i < frames.size() ? std::string_view(frames[i]) : std::string_view();
  }
  std::string_view version() const { return frame(0); }
  std::string_view id() const { return frame(1); }
  std::string_view domain() const { return frame(2); }
  std::string_view address() const { return frame(3); }
  std::string_view mechanism() const { return frame(5); }
  std::string_view key() const { return frame(6); }
};

struct Verdict {
  const char* status;
  std::string text;  // of a refusal
  std::string user;
  std::string key;
};

Verdict judge(const Request& r, const AllowList& list) {
  if (r.frames.size() < 6 || r.version() != "1.0") return {"500", "malformed ZAP request", {}, {}};
  if (r.domain() != kZapDomain) return {"400", "unknown domain", {}, {}};
  if (r.mechanism() != "CURVE")
    return {"400", "mechanism " + printable(r.mechanism(), 20) + " is not allowed", {}, {}};
  if (r.frames.size() != 7 || r.key().size() != 32)
    return {"500", "malformed CURVE credentials", {}, {}};
  std::string key = z85_of(r.key());
  std::optional<std::string> name = list.name_of(key);
  if (!name) return {"400", "key " + key + " is not in the allow-list", {}, {}};
  return {"200", {}, *std::move(name), std::move(key)};
}

// ZMTP metadata: one byte of name length, name, four bytes of value length, value.
std::string metadata(std::string_view name, std::string_view value) {
  std::string out(1, static_cast<char>(name.size()));
  out += name;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>((value.size() >> shift) & 0xff);
  out += value;
  return out;
}

Request receive(zmq::socket_t& socket) {
  Request r;
  zmq::message_t part;
  do {
    if (!socket.recv(part, zmq::recv_flags::none)) break;
    if (r.frames.size() < kFramesMax) r.frames.push_back(part.to_string());
  } while (part.more());
  return r;
}

}  // namespace

ZapHandler::ZapHandler(AllowList list, OnDenied on_denied)
    : list_(std::move(list)), on_denied_(std::move(on_denied)) {}

Result<std::shared_ptr<ZapHandler>> ZapHandler::start(zmq::context_t& context, AllowList list,
                                                      OnDenied on_denied) try {
  std::shared_ptr<ZapHandler> self(new ZapHandler(std::move(list), std::move(on_denied)));
  zmq::socket_t requests(context, zmq::socket_type::rep);
  requests.set(zmq::sockopt::linger, 0);
  requests.bind(kZapEndpoint);
  // Two ends of a pipe, named by the object: one context, one handler, so no other name is needed.
  const std::string stop_name = "inproc://proctor.zap.stop";
  zmq::socket_t stop(context, zmq::socket_type::pair);
  stop.set(zmq::sockopt::linger, 0);
  stop.bind(stop_name);
  self->stop_ = std::make_unique<zmq::socket_t>(context, zmq::socket_type::pair);
  self->stop_->set(zmq::sockopt::linger, 0);
  self->stop_->connect(stop_name);
  // Sockets may change threads across a full fence; starting a thread is one.
  self->thread_ =
      std::thread([raw = self.get(), r = std::move(requests), s = std::move(stop)]() mutable {
        raw->serve(std::move(r), std::move(s));
      });
  return self;
} catch (const zmq::error_t& e) {
  const Errc code = e.num() == EADDRINUSE ? Errc::kConflict : Errc::kUnavailable;
  return Error{code, std::string("start the ZAP handler: ") + e.what()};
}

ZapHandler::~ZapHandler() {
  if (!thread_.joinable()) return;
  try {
    stop_->send(zmq::str_buffer("stop"), zmq::send_flags::none);
  } catch (const zmq::error_t&) {
    // The context is being terminated: the thread's poll ends with ETERM.
  }
  thread_.join();
}

void ZapHandler::replace(AllowList list) {
  const std::lock_guard lock(mutex_);
  list_ = std::move(list);
}

bool ZapHandler::lists(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return list_.has_name(name);
}

std::optional<std::string> ZapHandler::admits(std::string_view public_z85) const {
  const std::lock_guard lock(mutex_);
  return list_.name_of(public_z85);
}

void ZapHandler::serve(zmq::socket_t requests, zmq::socket_t stop) {
  while (true) {
    try {
      std::array<zmq::pollitem_t, 2> items{
          {{requests.handle(), 0, ZMQ_POLLIN, 0}, {stop.handle(), 0, ZMQ_POLLIN, 0}}};
      zmq::poll(items, std::chrono::milliseconds(-1));
      if ((items[1].revents & ZMQ_POLLIN) != 0) return;
      if ((items[0].revents & ZMQ_POLLIN) != 0) answer(requests);
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR && e.num() != EAGAIN) return;  // ETERM: the context is going
    }
  }
}

void ZapHandler::answer(zmq::socket_t& requests) {
  const Request r = receive(requests);
  const Verdict v = [&] {
    const std::lock_guard lock(mutex_);
    return judge(r, list_);
  }();
  if (!v.text.empty()) {
    ++denials_;
    if (on_denied_) on_denied_("peer at " + printable(r.address(), 60) + ": " + v.text);
  }
  const std::string meta = v.key.empty() ? std::string() : metadata(kKeyProperty, v.key);
  const auto more = zmq::send_flags::sndmore;
  requests.send(zmq::str_buffer("1.0"), more);
  requests.send(zmq::buffer(r.id()), more);
  requests.send(zmq::buffer(std::string_view(v.status)), more);
  requests.send(zmq::buffer(v.text), more);
  requests.send(zmq::buffer(v.user), more);
  requests.send(zmq::buffer(meta), zmq::send_flags::none);
}

}  // namespace proctor::wire
