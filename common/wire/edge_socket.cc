#include "common/wire/edge_socket.h"

#include <chrono>
#include <utility>

#include "common/base/result.h"

namespace proctor::wire {
namespace asio = boost::asio;

EdgeSocket::EdgeSocket(asio::io_context& io, zmq::socket_t socket, int burst_max,
                       ReceiveOne receive_one)
    : socket_(std::move(socket)),
      fd_(io, socket_.get(zmq::sockopt::fd)),
      burst_max_(burst_max),
      receive_one_(std::move(receive_one)) {
  PROCTOR_ASSERT(0 < burst_max_);
  schedule_pump();
}

EdgeSocket::~EdgeSocket() {
  PROCTOR_ASSERT(!in_pump_);
  fd_.release();  // libzmq owns the fd
}

void EdgeSocket::schedule_pump() {
  if (std::exchange(pump_queued_, true)) return;
  asio::post(fd_.get_executor(), [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    pump_queued_ = false;
    pump();
  });
}

void EdgeSocket::arm() {
  if (std::exchange(armed_, true)) return;
  fd_.async_wait(asio::posix::stream_descriptor::wait_read,
                 [this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code ec) {
                   if (ec || alive.expired()) return;
                   armed_ = false;
                   pump();
                 });
}

EdgeSocket::Look EdgeSocket::look() {
  int events = 0;
  std::size_t size = sizeof events;
  if (zmq_getsockopt(socket_.handle(), ZMQ_EVENTS, &events, &size) != 0)
    return zmq_errno() == EINTR ? Look::kAgain : Look::kClosed;
  return (events & ZMQ_POLLIN) != 0 ? Look::kMessage : Look::kNothing;
}

void EdgeSocket::pump() {
  in_pump_ = true;
  Look seen = Look::kAgain;
  // Large messages take long each: others on the loop do not wait for a whole burst of them.
  constexpr std::chrono::milliseconds kTurn(5);
  const auto until = std::chrono::steady_clock::now() + kTurn;
  for (int i = 0; i < burst_max_ && (i == 0 || std::chrono::steady_clock::now() < until); ++i) {
    seen = look();
    if (seen != Look::kMessage) break;
    if (receive_one_(socket_)) continue;
    seen = Look::kNothing;
    break;
  }
  in_pump_ = false;
  if (seen == Look::kNothing) return arm();
  if (seen == Look::kClosed) return;  // the context is being terminated
  schedule_pump();  // burst spent: no new edge will come for what waits, so come back by ourselves
}
}  // namespace proctor::wire
