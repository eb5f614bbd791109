#include "tests/fault/liar/peer.h"

namespace proctor::liar {

Peer::Peer(Network& network, const wire::KeyPair& key, OnMessage on_message)
    : network_(network),
      public_z85_(key.public_z85),
      secret_z85_(key.secret_z85.reveal()),
      on_message_(std::move(on_message)) {}

Status Peer::connect() {
  port_.reset();
  up_ = false;
  wire::ZmqPort::Options options;
  options.endpoint = network_.endpoint;
  options.curve_client =
      wire::ZmqPort::CurveClient{{public_z85_, Secret(secret_z85_)}, network_.server_key};
  options.linger = std::chrono::milliseconds(0);
  PROCTOR_TRY(port_, wire::ZmqPort::open(
                         network_.io, network_.zmq, std::move(options),
                         [this](const wire::PeerMessage& m) {
                           Result<wire::Message> decoded = wire::decode(m.bytes);
                           if (decoded.ok()) on_message_(std::move(decoded).value());
                         },
                         [this](wire::ZmqPort::Link link, const std::string&) {
                           up_ = link == wire::ZmqPort::Link::kUp;
                         }));
  return ok_status();
}

}  // namespace proctor::liar
