#pragma once
// Coordinator::Loop: what its loop needs of Asio and ZeroMQ, whose headers are heavy.
#include <zmq.hpp>

#include "common/wire/asio.h"
#include "coordinator/shell/coordinator.h"

namespace proctor {
struct Coordinator::Loop {
  boost::asio::io_context io{1};
  zmq::context_t zmq{1};
  boost::asio::steady_timer timer{io};
  boost::asio::steady_timer status_timer{io};
  boost::asio::steady_timer goodbye_timer{io};
  boost::asio::steady_timer gone_timer{io};
};
}  // namespace proctor
