#pragma once
// A worker that says what a test wants said, sense or not, to a real coordinator over plain TCP on
// this machine.  One thread: until() turns the loop.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "common/wire/zmq_port.h"

namespace proctor::testing {

// Of all raw workers of a test: declared before them.
struct RawNetwork {
  boost::asio::io_context io;
  zmq::context_t zmq{1};
  // False after too long a time.
  template <class Predicate>
  [[nodiscard]] bool until(Predicate done) {
    constexpr std::chrono::seconds kLong(180);
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!done() && std::chrono::steady_clock::now() < end) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return done();
  }
};

class RawWorker {
 public:
  RawWorker(RawNetwork& network, const std::string& endpoint) {
    wire::ZmqPort::Options options;
    options.endpoint = endpoint;
    options.insecure_loopback = true;
    auto port = wire::ZmqPort::open(
        network.io, network.zmq, options, [this](const wire::PeerMessage& m) { on(m.bytes); },
        [this](wire::ZmqPort::Link link, const std::string&) {
          if (link == wire::ZmqPort::Link::kUp) connected = true;
        });
    REQUIRE_MESSAGE(port.ok(), (port.ok() ? "" : port.error().detail));
    port_ = std::move(port).value();
  }

  bool say(const wire::Message& m, std::uint32_t version = wire::kVersion) {
    return port_->send({}, wire::encode(m, version));
  }
  // One that has no slots, and so gets nothing to do.
  static wire::Sync sync(const std::string& name) {
    wire::Sync m;
    m.worker = WorkerId(name);
    m.boot = BootId(1);
    m.version = "raw";
    m.features = {"sandbox:bubblewrap"};
    return m;
  }

  bool connected = false;
  std::vector<wire::SyncReply> replies;
  std::vector<wire::Assign> assigned;
  std::vector<wire::Bundle> bundles;
  std::vector<wire::ChunkAck> chunk_acks;
  std::vector<std::string> refusals;

 private:
  void on(const std::string& bytes) {
    auto m = wire::decode(bytes);
    REQUIRE_MESSAGE(m.ok(), (m.ok() ? "" : m.error().detail));
    if (auto* reply = std::get_if<wire::SyncReply>(&*m)) replies.push_back(std::move(*reply));
    if (auto* assign = std::get_if<wire::Assign>(&*m)) assigned.push_back(std::move(*assign));
    if (auto* bundle = std::get_if<wire::Bundle>(&*m)) bundles.push_back(std::move(*bundle));
    if (auto* ack = std::get_if<wire::ChunkAck>(&*m)) chunk_acks.push_back(*ack);
    if (auto* refuse = std::get_if<wire::Refuse>(&*m)) refusals.push_back(refuse->reason);
  }

  std::unique_ptr<wire::ZmqPort> port_;
};

}  // namespace proctor::testing
