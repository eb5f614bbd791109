#pragma once
// One connection to the coordinator, with a key.  On the loop's thread.
#include <functional>
#include <memory>
#include <string>
#include <zmq.hpp>

#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "common/wire/zmq_port.h"

namespace proctor::liar {

struct Network {
  boost::asio::io_context io;
  zmq::context_t zmq{1};
  std::string endpoint, server_key;
};

class Peer {
 public:
  using OnMessage = std::function<void(wire::Message)>;
  Peer(Network& network, const wire::KeyPair& key, OnMessage on_message);

  // Opens a connection, a new one if there was one.  Not from a callback.
  Status connect();
  void close() { port_.reset(); }
  bool is_up() const { return port_ != nullptr && up_; }
  bool say(const wire::Message& m) { return say_bytes(wire::encode(m)); }
  bool say_bytes(std::string bytes) { return is_up() && port_->send({}, std::move(bytes)); }

 private:
  Network& network_;
  std::string public_z85_;
  std::string secret_z85_;
  OnMessage on_message_;
  std::unique_ptr<wire::ZmqPort> port_;
  bool up_ = false;
};

}  // namespace proctor::liar
