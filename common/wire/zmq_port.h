#pragma once
// ZmqPort: the ROUTER of a coordinator or the DEALER of a worker, driven by an Asio loop.
//
// Bounded everywhere: high-water marks in both directions (send() says no instead of queueing), a
// largest message, a burst per turn of the loop, a time for handshakes.  A ROUTER knows its peers
// by routing ids, which a peer may choose freely: identity is PeerMessage::user, which the
// allow-list bound to the peer's key.  Leave Options::routing_id empty unless a test needs it: then
// every connection gets a new id, and a second worker cannot take over the id of a first.
//
// A disconnected DEALER reconnects by itself (100 to 500 ms), a refused one after
// Options::refused_retry (libzmq alone would give up for good).  A ROUTER hears that *some* peer
// went (Link::kDown; libzmq 4.3.4 keeps ROUTER_NOTIFY to draft builds) and finds out who by
// probe().
//
// Thread: the loop's, all of it.  Callbacks must not destroy the port; post that instead.
// The context must outlive the port, and the loop must outlive it too.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/wire/curve.h"

namespace boost::asio {
class io_context;
}

namespace zmq {
class context_t;
class message_t;
class socket_t;
}  // namespace zmq

namespace proctor::wire {
class EdgeSocket;

struct PeerMessage {
  std::string peer;  // routing id; empty on a DEALER
  std::string user;  // name of the allow-list; empty without CURVE
  std::string bytes;
};

class ZmqPort {
 public:
  enum class Type { kRouter, kDealer };
  enum class Attach { kBind, kConnect };
  enum class Link {
    kUp,       // a handshake succeeded; detail: our endpoint
    kDown,     // a connection ended, or never became one
    kRefused,  // a handshake failed for good: key, mechanism, protocol; both sides are told.
               // detail, of the side that binds: "10.0.0.7: ..." or "a peer: ..."; empty: the
               // allow-list refused the key, and ZapHandler says whose
    kRevoked,  // a message of a peer whose key was taken off the list was dropped; detail: routing
               // id
  };
  struct CurveServer {
    KeyPair keys;
    std::shared_ptr<ZapHandler> zap;  // not null
  };
  struct CurveClient {
    KeyPair keys;
    std::string server_public_z85;
  };
  struct Options {
    Type type = Type::kDealer;
    Attach attach = Attach::kConnect;
    std::string endpoint;
    std::optional<CurveServer> curve_server;  // of the side that binds
    std::optional<CurveClient> curve_client;  // of the side that connects
    bool insecure_loopback = false;           // see curve.h
    std::string routing_id;                   // of a DEALER
    int send_hwm = 256;                       // messages, per peer
    int receive_hwm = 256;
    std::size_t message_bytes_max = limits::kFrameBytes;  // of one part; who sends more is cut off
    std::chrono::milliseconds linger{500};                // for what is queued when the port closes
    std::chrono::milliseconds refused_retry{1'000};
    int burst_max = 64;  // messages per turn of the loop: one peer cannot starve it
  };
  struct Counters {
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    std::uint64_t would_block = 0;  // send: the high-water mark, or a DEALER without connection
    std::uint64_t unreachable = 0;  // send: no such peer (any more)
    std::uint64_t malformed = 0;    // wrong number of parts
    std::uint64_t revoked = 0;      // dropped, see Link::kRevoked
    std::uint64_t refused = 0;      // handshakes, see Link::kRefused
  };
  using OnMessage = std::function<void(PeerMessage)>;
  using OnLink = std::function<void(Link, const std::string& detail)>;

  // Fails with kInvalid (curve.h, options that do not fit), kConflict (address in use),
  // kUnavailable.
  static Result<std::unique_ptr<ZmqPort>> open(boost::asio::io_context& io, zmq::context_t& context,
                                               Options options, OnMessage on_message,
                                               OnLink on_link = {});
  ~ZmqPort();
  ZmqPort(const ZmqPort&) = delete;
  ZmqPort& operator=(const ZmqPort&) = delete;

  // A DEALER ignores `peer`.  False: not sent and never will be (counters() say why); the next Sync
  // heals it, so nobody needs a queue of their own.
  bool send(const std::string& peer, std::string bytes);
  // ROUTER: is there a connection behind this id?  Sends an empty message, which ports ignore.
  // After Link::kDown ask on the next tick, not at once: the pipe is dismantled after the event.
  bool probe(const std::string& peer);
  // With the port number that tcp://HOST:* or :0 got.
  std::string bound_endpoint() const { return bound_endpoint_; }
  const Counters& counters() const { return counters_; }

 private:
  struct Retry;
  ZmqPort(Options options, OnMessage on_message, OnLink on_link);
  void start(boost::asio::io_context& io, zmq::context_t& context);
  void watch_links(boost::asio::io_context& io, zmq::context_t& context);
  bool receive(zmq::socket_t& socket);
  bool receive_link_event(zmq::socket_t& monitor);
  void deliver(std::string peer, zmq::message_t& body);
  bool send_parts(const std::string& peer, std::string bytes);
  void connect_again_later();

  const Options options_;
  const OnMessage on_message_;
  const OnLink on_link_;
  Counters counters_;
  std::string bound_endpoint_;
  std::unique_ptr<EdgeSocket> main_;
  std::unique_ptr<EdgeSocket> monitor_;
  std::map<std::uint32_t, std::string> accepted_;  // descriptor of a connection: the peer's address
  std::string refused_;                            // why; its connection is about to end
  std::unique_ptr<Retry> retry_;  // set: a refused connection waits to be made again
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // handlers hold it weakly
};
}  // namespace proctor::wire
