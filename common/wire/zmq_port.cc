#include "common/wire/zmq_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>
#include <zmq.hpp>

#include "common/base/text.h"
#include "common/wire/asio.h"
#include "common/wire/edge_socket.h"

namespace proctor::wire {
namespace asio = boost::asio;

namespace {
constexpr int kHandshakeMs = 5'000;
constexpr int kBacklog = 1'024;            // a thousand workers may come back in the same second
constexpr std::size_t kCopyBelow = 4'096;  // bytes: cheaper to copy than to hand over
constexpr int kLinkEvents = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                            ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

Status check_options(const ZmqPort::Options& o) {
  const bool binds = o.attach == ZmqPort::Attach::kBind;
  const auto invalid = [](const char* why) { return Error{Errc::kInvalid, why}; };
  if (o.curve_server && !binds) return invalid("a CURVE server has to bind");
  if (o.curve_client && binds) return invalid("a CURVE client has to connect");
  if (o.curve_server && o.curve_server->zap == nullptr)
    return invalid("a CURVE server without a ZAP handler would accept every key");
  if (o.curve_client && !is_z85_key(o.curve_client->server_public_z85))
    return invalid("the coordinator's public key is not a key");
  // libzmq keeps ids that begin with zero for those it makes up, and has one byte for the length.
  if (!o.routing_id.empty() && (o.type == ZmqPort::Type::kRouter || o.routing_id.front() == '\0' ||
                                255 < o.routing_id.size()))
    return invalid("not a routing id of a DEALER");
  if (o.send_hwm <= 0 || o.receive_hwm <= 0 || o.burst_max <= 0)
    return invalid("a queue or burst without a bound");
  const bool has_curve = o.curve_server || o.curve_client;
  return binds ? check_listen_endpoint(o.endpoint, has_curve, o.insecure_loopback)
               : check_connect_endpoint(o.endpoint, has_curve, o.insecure_loopback);
}

// A host that vanished.  The kernel looks, not ZMTP's heartbeats: with those libzmq 4.3.4 aborts
// the whole process when a connection ends whose receive queue is full, that is under load and by
// any peer's hand (zeromq/libzmq issues 4364, 4767 and 3937).
void watch_over_tcp(zmq::socket_t& s) {
  constexpr int kIdleS = 1, kBetweenS = 1, kProbes = 3;
  constexpr int kUnansweredMs = 10'000;  // what was sent; a slow reader is not cut off sooner
  constexpr int kConnectMs = 3'000;      // behind a lost SYN the kernel would wait for minutes
  s.set(zmq::sockopt::tcp_keepalive, 1);
  s.set(zmq::sockopt::tcp_keepalive_idle, kIdleS);
  s.set(zmq::sockopt::tcp_keepalive_intvl, kBetweenS);
  s.set(zmq::sockopt::tcp_keepalive_cnt, kProbes);
  s.set(zmq::sockopt::tcp_maxrt, kUnansweredMs);
  s.set(zmq::sockopt::connect_timeout, kConnectMs);
}

void set_options(zmq::socket_t& s, const ZmqPort::Options& o) {
  s.set(zmq::sockopt::sndhwm, o.send_hwm);
  s.set(zmq::sockopt::rcvhwm, o.receive_hwm);
  s.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(o.message_bytes_max));
  s.set(zmq::sockopt::linger, static_cast<int>(o.linger.count()));
  s.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  s.set(zmq::sockopt::backlog, kBacklog);
  s.set(zmq::sockopt::reconnect_ivl, 100);
  s.set(zmq::sockopt::reconnect_ivl_max,
        500);  // a resumed coordinator has work within three seconds
  watch_over_tcp(s);
  s.set(zmq::sockopt::ipv6, o.endpoint.find('[') != std::string::npos);
  if (o.type == ZmqPort::Type::kRouter) s.set(zmq::sockopt::router_mandatory, true);
  // Only to finished handshakes: a message must not wait for a coordinator that may never come.
  if (o.attach == ZmqPort::Attach::kConnect) s.set(zmq::sockopt::immediate, true);
  if (!o.routing_id.empty()) s.set(zmq::sockopt::routing_id, o.routing_id);
  if (o.curve_server) {
    s.set(zmq::sockopt::curve_server, true);
    s.set(zmq::sockopt::curve_secretkey, o.curve_server->keys.secret_z85.reveal());
    s.set(zmq::sockopt::zap_domain, kZapDomain);
  }
  if (o.curve_client) {
    s.set(zmq::sockopt::curve_serverkey, o.curve_client->server_public_z85);
    s.set(zmq::sockopt::curve_publickey, o.curve_client->keys.public_z85);
    s.set(zmq::sockopt::curve_secretkey, o.curve_client->keys.secret_z85.reveal());
  }
}

bool try_receive(zmq::socket_t& socket, zmq::message_t& part) {
  return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) != -1;
}

// The rest of a message of too many parts.  They arrived together, so none is waited for.
void drain_parts(zmq::socket_t& socket, bool more) {
  zmq::message_t part;
  while (more && try_receive(socket, part)) more = part.more();
}

// zmq_msg_gets says no with a null pointer where cppzmq throws; no is a usual answer here.
std::string_view property(zmq::message_t& message, const char* name) {
  const char* value = zmq_msg_gets(message.handle(), name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The address at the other end; "a peer" where it has none, or has gone already.
std::string peer_of(std::uint32_t descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  auto* any = reinterpret_cast<sockaddr*>(&address);  // NOLINT: as sockets want it
  if (::getpeername(static_cast<int>(descriptor), any, &size) != 0 ||
      ::getnameinfo(any, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0 ||
      address.ss_family == AF_UNIX)
    return "a peer";
  return text.data();
}

void free_string(void*, void* hint) {
  delete static_cast<std::string*>(hint);
}

zmq::message_t as_message(std::string bytes) {
  if (bytes.size() < kCopyBelow) return zmq::message_t(bytes.data(), bytes.size());
  auto kept = std::make_unique<std::string>(std::move(bytes));
  zmq::message_t message(kept->data(), kept->size(), free_string, kept.get());
  static_cast<void>(kept.release());  // free_string deletes it, on libzmq's thread
  return message;
}
}  // namespace

struct ZmqPort::Retry {
  asio::steady_timer timer;
};

ZmqPort::ZmqPort(Options options, OnMessage on_message, OnLink on_link)
    : options_(std::move(options)),
      on_message_(std::move(on_message)),
      on_link_(std::move(on_link)) {}

Result<std::unique_ptr<ZmqPort>> ZmqPort::open(asio::io_context& io, zmq::context_t& context,
                                               Options options, OnMessage on_message,
                                               OnLink on_link) {
  PROCTOR_CHECK_OK(check_options(options));
  const std::string endpoint = options.endpoint;
  try {
    std::unique_ptr<ZmqPort> port(
        new ZmqPort(std::move(options), std::move(on_message), std::move(on_link)));
    port->start(io, context);
    return port;
  } catch (const zmq::error_t& e) {
    const int n = e.num();
    const Errc code = n == EADDRINUSE              ? Errc::kConflict
                      : n == EINVAL || n == EACCES ? Errc::kInvalid
                                                   : Errc::kUnavailable;
    return Error{code, "open " + printable(endpoint) + ": " + e.what()};
  } catch (const boost::system::system_error& e) {
    return Error{Errc::kUnavailable, "open " + printable(endpoint) + ": " + e.what()};
  }
}

void ZmqPort::start(asio::io_context& io, zmq::context_t& context) {
  zmq::socket_t socket(context, options_.type == Type::kRouter ? zmq::socket_type::router
                                                               : zmq::socket_type::dealer);
  set_options(socket, options_);
  main_ = std::make_unique<EdgeSocket>(io, std::move(socket), options_.burst_max,
                                       [this](zmq::socket_t& s) { return receive(s); });
  watch_links(io, context);  // before the first connection can come up
  if (options_.attach == Attach::kBind)
    main_->socket().bind(options_.endpoint);
  else
    main_->socket().connect(options_.endpoint);
  bound_endpoint_ = main_->socket().get(zmq::sockopt::last_endpoint);
  main_->touched();
}

void ZmqPort::watch_links(asio::io_context& io, zmq::context_t& context) {
  static std::atomic<std::uint64_t> next{0};
  const std::string name = "inproc://proctor.monitor." + std::to_string(next++);
  if (zmq_socket_monitor(main_->socket().handle(), name.c_str(), kLinkEvents) != 0)
    throw zmq::error_t();
  zmq::socket_t monitor(context, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, 0);
  monitor.connect(name);
  monitor_ =
      std::make_unique<EdgeSocket>(io, std::move(monitor), options_.burst_max,
                                   [this](zmq::socket_t& s) { return receive_link_event(s); });
}

ZmqPort::~ZmqPort() {
  // Closes libzmq's end first: it would wait for us once the pair between us is full.
  if (main_ != nullptr) zmq_socket_monitor(main_->socket().handle(), nullptr, 0);
}

bool ZmqPort::receive(zmq::socket_t& socket) {
  zmq::message_t id;
  zmq::message_t body;
  const bool router = options_.type == Type::kRouter;
  if (router && !try_receive(socket, id)) return false;
  if (router && !id.more()) {
    ++counters_.malformed;
    return true;
  }
  if (!try_receive(socket, body)) return false;
  if (body.more()) {
    drain_parts(socket, true);
    ++counters_.malformed;
    return true;
  }
  if (body.size() != 0) deliver(id.to_string(), body);  // empty: a probe
  return true;
}

void ZmqPort::deliver(std::string peer, zmq::message_t& body) {
  PeerMessage m;
  m.peer = std::move(peer);
  if (options_.curve_server) {
    const auto user = options_.curve_server->zap->admits(property(body, kKeyProperty));
    if (!user) {
      ++counters_.revoked;
      if (on_link_) on_link_(Link::kRevoked, m.peer);
      return;
    }
    m.user = *user;
  }
  m.bytes = body.to_string();
  ++counters_.received;
  on_message_(std::move(m));
}

bool ZmqPort::receive_link_event(zmq::socket_t& monitor) {
  zmq::message_t head;
  zmq::message_t where;
  if (!try_receive(monitor, head)) return false;
  if (head.more() && try_receive(monitor, where)) drain_parts(monitor, where.more());
  std::uint16_t event = 0;
  std::uint32_t value = 0;
  PROCTOR_ASSERT(head.size() == sizeof event + sizeof value);  // libzmq's own word, not a peer's
  std::memcpy(&event, head.data<char>(), sizeof event);
  std::memcpy(&value, head.data<char>() + sizeof event, sizeof value);
  const bool binds = options_.attach == Attach::kBind;
  if (event == ZMQ_EVENT_ACCEPTED) {
    accepted_[value] = peer_of(value);
    return true;
  }
  Link link = Link::kDown;
  std::string detail = where.to_string();
  if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    link = Link::kUp;
  } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
    link = Link::kRefused;
    detail = binds ? "" : detail + ": key not allowed (ZAP " + std::to_string(value) + ")";
  } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
    link = Link::kRefused;
    refused_ = value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
                   ? ": the peer does not use the same security mechanism"
               : value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC && binds
                   ? ": handshake failed: it has another key for this coordinator than ours"
                   : ": handshake failed (protocol error " + std::to_string(value) + ")";
    if (binds) return true;  // the end of the connection, which comes next, says whose it was
    detail += std::exchange(refused_, "");
  } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
    detail += ": connection lost during the handshake (wrong key of the coordinator?)";
  } else if (const auto from = accepted_.extract(value); from && !refused_.empty()) {
    link = Link::kRefused;
    detail = from.mapped() + std::exchange(refused_, "");
  }
  if (link == Link::kRefused) {
    ++counters_.refused;
    if (!binds) connect_again_later();
  }
  // Sends handle the socket's commands only now and then: without this look the new pipe might not
  // be there yet for a Sync sent from the callback.
  int events = 0;
  std::size_t size = sizeof events;
  static_cast<void>(zmq_getsockopt(main_->socket().handle(), ZMQ_EVENTS, &events, &size));
  main_->touched();
  if (on_link_) on_link_(link, detail);
  return true;
}

// After a refused handshake libzmq ends the session and does not reconnect, but the refusal may be
// temporary: a key that is not listed yet, another program on the port while the coordinator
// restarts.
void ZmqPort::connect_again_later() {
  if (retry_) return;
  retry_ = std::make_unique<Retry>(Retry{asio::steady_timer(main_->executor())});
  retry_->timer.expires_after(options_.refused_retry);
  retry_->timer.async_wait(
      [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code ec) {
        if (ec || alive.expired()) return;
        retry_.reset();
        void* socket = main_->socket().handle();
        const char* endpoint = options_.endpoint.c_str();
        // The session may be gone or not; the address was right before, so connecting cannot fail
        // but for a context that is being terminated.
        static_cast<void>(zmq_disconnect(socket, endpoint));
        static_cast<void>(zmq_connect(socket, endpoint));
        main_->touched();
      });
}

bool ZmqPort::send_parts(const std::string& peer, std::string bytes) {
  void* socket = main_->socket().handle();
  const auto refused = [&] {
    ++(zmq_errno() == EHOSTUNREACH ? counters_.unreachable : counters_.would_block);
    return false;
  };
  if (options_.type == Type::kRouter &&
      zmq_send(socket, peer.data(), peer.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) == -1)
    return refused();
  zmq::message_t message = as_message(std::move(bytes));
  if (zmq_msg_send(message.handle(), socket, ZMQ_DONTWAIT) == -1) return refused();
  return true;
}

bool ZmqPort::send(const std::string& peer, std::string bytes) {
  PROCTOR_ASSERT(!bytes.empty());  // empty is a probe
  const bool sent = send_parts(peer, std::move(bytes));
  counters_.sent += sent ? 1 : 0;
  main_->touched();
  return sent;
}

bool ZmqPort::probe(const std::string& peer) {
  PROCTOR_ASSERT(options_.type == Type::kRouter);
  const std::uint64_t full = counters_.would_block;
  const bool sent = send_parts(peer, {});
  main_->touched();
  return sent || full != counters_.would_block;  // a full queue has somebody behind it
}
}  // namespace proctor::wire
