// The two ways to lose messages with an edge-triggered ZMQ_FD.  Over inproc a sent message is in
// the receiver's mailbox at once, so the order of events is the test's and not the scheduler's.
#include "bench.h"
#include "common/wire/edge_socket.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

struct Pair {
  Pair() {
    zmq::socket_t near(bench.context, zmq::socket_type::pair);
    near.bind("inproc://edge");
    far = zmq::socket_t(bench.context, zmq::socket_type::pair);
    far.set(zmq::sockopt::linger, 0);
    far.connect("inproc://edge");
    edge = std::make_unique<EdgeSocket>(bench.io, std::move(near), 16, [this](zmq::socket_t& s) {
      zmq::message_t m;
      if (!s.recv(m, zmq::recv_flags::dontwait)) return false;
      ++got;
      return true;
    });
  }
  Bench bench;
  int got = 0;
  zmq::socket_t far;
  std::unique_ptr<EdgeSocket> edge;
};

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("more messages than one turn may handle are read to the last") {
    Pair p;
    p.bench.settle();  // armed, nothing to read
    for (int i = 0; i < 100; ++i) p.far.send(zmq::str_buffer("b"), zmq::send_flags::none);
    CHECK(p.bench.until([&] { return p.got == 100; }));
  }

  TEST_CASE("a message whose wake-up a send swallowed is still read") {
    Pair p;
    p.bench.settle();
    p.far.send(zmq::str_buffer("crossing"), zmq::send_flags::none);
    static_cast<void>(p.edge->socket().get(zmq::sockopt::events));  // empties the mailbox
    p.edge->touched();
    CHECK(p.bench.until([&] { return p.got == 1; }));
  }

  TEST_CASE("messages that came before the loop are read") {
    Pair p;
    p.far.send(zmq::str_buffer("early"), zmq::send_flags::none);
    static_cast<void>(p.edge->socket().get(zmq::sockopt::events));
    CHECK(p.bench.until([&] { return p.got == 1; }));
  }

  TEST_CASE("a port that goes away leaves its loop and its context whole") {
    Pair p;
    p.bench.settle();
    p.far.send(zmq::str_buffer("unread"), zmq::send_flags::none);
    p.edge->touched();
    p.edge.reset();  // with a posted look and an armed wait
    p.bench.settle();
    CHECK(p.got == 0);
  }
}
