#pragma once
// One loop, one ZeroMQ context, and as many ports as a test opens: a coordinator and its workers in
// one thread, over real sockets.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/base/files.h"
#include "common/wire/asio.h"
#include "common/wire/zmq_port.h"

namespace proctor::wire {

using Type = ZmqPort::Type;
using Attach = ZmqPort::Attach;
using Link = ZmqPort::Link;

// A port and what it was told.
struct Peer {
  std::vector<PeerMessage> got;
  std::vector<std::pair<Link, std::string>> links;
  std::function<void(PeerMessage)> on_message;  // instead of `got`
  std::unique_ptr<ZmqPort> port;

  bool saw(Link link) const {
    for (const auto& [seen, detail] : links)
      if (seen == link) return true;
    return false;
  }
};

inline KeyPair new_key() {
  Result<KeyPair> key = generate_key();
  REQUIRE(key.ok());
  return std::move(key).value();
}

class Bench {
 public:
  Bench() : dir_(std::move(TempDir::create("wire")).value()) {}
  ~Bench() {
    peers_.clear();  // before the context and the loop
    zap.reset();
  }

  // Runs the loop until `done`, at most three minutes: ThreadSanitizer on a busy machine needs half
  // of it.
  bool until(const std::function<bool()>& done) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (!done()) {
      if (give_up < std::chrono::steady_clock::now()) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  // For "and nothing else happens": the loop runs, bounded, with whatever is on its way.
  void settle() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
    until([&] { return end < std::chrono::steady_clock::now(); });
  }

  Result<Peer*> try_open(ZmqPort::Options options) {
    auto peer = std::make_unique<Peer>();
    Peer* raw = peer.get();
    PROCTOR_TRY(peer->port, ZmqPort::open(
                                io, context, std::move(options),
                                [raw](PeerMessage m) {
                                  if (raw->on_message) return raw->on_message(std::move(m));
                                  raw->got.push_back(std::move(m));
                                },
                                [raw](Link l, const std::string& detail) {
                                  raw->links.emplace_back(l, detail);
                                }));
    peers_.push_back(std::move(peer));
    return raw;
  }
  Peer& open(ZmqPort::Options options) {
    Result<Peer*> peer = try_open(std::move(options));
    REQUIRE_MESSAGE(peer.ok(), peer.error().detail);
    return **peer;
  }

  Peer& ipc_router() {
    ZmqPort::Options o;
    o.type = Type::kRouter;
    o.attach = Attach::kBind;
    o.endpoint = "ipc://" + (dir_.path() / "c.ipc").string();
    return open(o);
  }
  Peer& dealer(const std::string& endpoint) {
    ZmqPort::Options o;
    o.endpoint = endpoint;
    return open(o);
  }
  // A ROUTER with CURVE on a port of its own, and the handler that guards it.
  Peer& curve_router(AllowList allowed) {
    if (zap == nullptr) {
      auto started = ZapHandler::start(context, std::move(allowed), [this](std::string reason) {
        const std::lock_guard lock(denied_mutex_);
        denied_.push_back(std::move(reason));
      });
      REQUIRE(started.ok());
      zap = std::move(started).value();
    }
    ZmqPort::Options o;
    o.type = Type::kRouter;
    o.attach = Attach::kBind;
    o.endpoint = "tcp://127.0.0.1:*";
    o.curve_server = ZmqPort::CurveServer{server_key, zap};
    return open(o);
  }
  Peer& curve_dealer(const std::string& endpoint, const KeyPair& key) {
    ZmqPort::Options o;
    o.endpoint = endpoint;
    o.curve_client = ZmqPort::CurveClient{key, server_key.public_z85};
    return open(o);
  }
  std::vector<std::string> denied() {
    const std::lock_guard lock(denied_mutex_);
    return denied_;
  }

  boost::asio::io_context io{1};
  zmq::context_t context{1};
  KeyPair server_key = new_key();
  std::shared_ptr<ZapHandler> zap;

 private:
  TempDir dir_;
  std::mutex denied_mutex_;
  std::vector<std::string> denied_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace proctor::wire
