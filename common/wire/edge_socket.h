#pragma once
// EdgeSocket: one ZeroMQ socket in an Asio loop.  The only file that knows ZMQ_FD.
//
// ZMQ_FD is edge-triggered: it goes readable when the socket's mailbox gets a command, and ANY zmq
// call on the socket (receive, send, even reading ZMQ_EVENTS) may empty the mailbox.  So:
//   1. on wake ask ZMQ_EVENTS, never assume;   2. drain, or post ourselves to come back;
//   3. after a send ask ZMQ_EVENTS again: it may have swallowed the edge of a receive (touched());
//   4. Asio must never close the fd, libzmq owns it: release() it.
// Measured: without rule 2 two of 101 messages arrive, without rule 3 all but the last.
//
// Thread: the loop's.  `receive_one` may use the socket and anything else, but not destroy this.
#include <functional>
#include <memory>
#include <zmq.hpp>

#include "common/wire/asio.h"

namespace proctor::wire {
class EdgeSocket {
 public:
  // Takes one message off the socket without blocking; false: there was none.
  using ReceiveOne = std::function<bool(zmq::socket_t&)>;

  // Messages may have arrived before: the first look is posted, nothing is called from here.
  EdgeSocket(boost::asio::io_context& io, zmq::socket_t socket, int burst_max,
             ReceiveOne receive_one);
  ~EdgeSocket();
  EdgeSocket(const EdgeSocket&) = delete;
  EdgeSocket& operator=(const EdgeSocket&) = delete;

  zmq::socket_t& socket() { return socket_; }
  boost::asio::any_io_executor executor() { return fd_.get_executor(); }
  // To be called after each zmq call on socket().
  void touched() { schedule_pump(); }

 private:
  enum class Look { kMessage, kNothing, kAgain, kClosed };
  Look look();
  void schedule_pump();
  void arm();
  void pump();

  zmq::socket_t socket_;
  boost::asio::posix::stream_descriptor fd_;
  const int burst_max_;
  ReceiveOne receive_one_;
  bool armed_ = false;
  bool pump_queued_ = false;
  bool in_pump_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // handlers hold it weakly
};
}  // namespace proctor::wire
