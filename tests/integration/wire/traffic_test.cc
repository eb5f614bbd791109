#include <sys/socket.h>

#include <random>
#include <thread>

#include "bench.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

// The coordinator of these tests: echoes what it can decode, refuses what it cannot.
struct Echo {
  explicit Echo(Peer& router) {
    router.on_message = [this, &router](PeerMessage m) {
      if (!decode(m.bytes).ok()) {
        ++garbage;
        static_cast<void>(router.port->send(m.peer, encode(Refuse{"garbage"})));
        return;
      }
      ++echoed;
      lost += router.port->send(m.peer, std::move(m.bytes)) ? 0 : 1;
    };
  }
  int echoed = 0;
  int garbage = 0;
  int lost = 0;
};

// Sends `total` numbered messages with at most 64 on their way; each must come back once, in order.
struct Pinger {
  Pinger(Peer& dealer, int messages) : peer(dealer), total(messages) {
    peer.on_message = [this](PeerMessage m) {
      const Result<Message> got = decode(m.bytes);
      REQUIRE(got.ok());
      const auto* ack = std::get_if<ChunkAck>(&got.value());
      REQUIRE(ack != nullptr);
      REQUIRE(ack->next_offset == static_cast<std::uint64_t>(returned));
      ++returned;
      fill();
    };
  }
  void fill() {
    while (sent < total && sent - returned < 64) {
      const ChunkAck m{{RunId(1), AttemptNo(1)}, static_cast<std::uint64_t>(sent)};
      REQUIRE(peer.port->send("", encode(m)));
      ++sent;
    }
  }
  bool done() const { return returned == total; }
  Peer& peer;
  int total;
  int sent = 0;
  int returned = 0;
};

AllowList allow(std::initializer_list<std::pair<const KeyPair*, const char*>> keys) {
  AllowList list;
  for (const auto& [key, name] : keys) REQUIRE(list.add(key->public_z85, name).ok());
  return list;
}

}  // namespace

TEST_SUITE("wire") {
  // libzmq 4.3.4 with ZMTP heartbeats: "Assertion failed: !_io_error", at the next beat.
  TEST_CASE("a peer that floods a slow reader and dies does not end the process") {
    constexpr auto kABeat = std::chrono::milliseconds(1'300);
    Bench b;
    ZmqPort::Options o;
    o.type = Type::kRouter;
    o.attach = Attach::kBind;
    o.endpoint = "tcp://127.0.0.1:*";
    o.insecure_loopback = true;
    o.receive_hwm = 4;
    Peer& router = b.open(o);
    {
      zmq::context_t elsewhere(1);
      zmq::socket_t flood(elsewhere, zmq::socket_type::dealer);
      flood.set(zmq::sockopt::linger, 0);
      flood.connect(router.port->bound_endpoint());
      const std::string bytes(100'000, 'x');
      for (int i = 0; i < 200; ++i) (void)flood.send(zmq::buffer(bytes), zmq::send_flags::dontwait);
      std::this_thread::sleep_for(kABeat);  // nobody reads: its messages fill queue and sockets
    }
    std::this_thread::sleep_for(kABeat);
    REQUIRE(b.until([&] { return !router.got.empty(); }));
    b.settle();
    CHECK(router.port->counters().malformed == 0);
  }

  TEST_CASE("twenty thousand round trips over ipc with 64 on their way and none is lost") {
    Bench b;
    Peer& router = b.ipc_router();
    Echo echo(router);
    std::vector<std::unique_ptr<Pinger>> pingers;
    for (int i = 0; i < 4; ++i)
      pingers.push_back(std::make_unique<Pinger>(b.dealer(router.port->bound_endpoint()), 5'000));
    REQUIRE(b.until([&] {
      for (const auto& p : pingers)
        if (!p->peer.saw(Link::kUp)) return false;
      return true;
    }));
    for (const auto& p : pingers) p->fill();
    for (const auto& p : pingers) REQUIRE(b.until([&] { return p->done(); }));
    CHECK(echo.echoed == 20'000);
    CHECK(echo.lost == 0);
  }

  TEST_CASE("twenty thousand round trips over tcp with curve and none is lost") {
    Bench b;
    const KeyPair w1 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}}));
    Echo echo(router);
    Pinger pinger(b.curve_dealer(router.port->bound_endpoint(), w1), 20'000);
    REQUIRE(b.until([&] { return pinger.peer.saw(Link::kUp); }));
    pinger.fill();
    REQUIRE(b.until([&] { return 10'000 <= pinger.returned; }));
    REQUIRE(b.until([&] { return pinger.done(); }));
    CHECK(echo.lost == 0);
  }

  TEST_CASE("garbage of an accepted peer disturbs nobody else") {
    Bench b;
    const KeyPair good = new_key();
    const KeyPair evil = new_key();
    Peer& router = b.curve_router(allow({{&good, "good"}, {&evil, "evil"}}));
    Echo echo(router);
    Pinger pinger(b.curve_dealer(router.port->bound_endpoint(), good), 3'000);
    zmq::socket_t raw(b.context, zmq::socket_type::dealer);
    raw.set(zmq::sockopt::linger, 0);
    raw.set(zmq::sockopt::curve_serverkey, b.server_key.public_z85);
    raw.set(zmq::sockopt::curve_publickey, evil.public_z85);
    raw.set(zmq::sockopt::curve_secretkey, evil.secret_z85.reveal());
    raw.connect(router.port->bound_endpoint());
    REQUIRE(b.until([&] { return pinger.peer.saw(Link::kUp); }));
    pinger.fill();
    std::mt19937_64 rng(1);
    for (int i = 0; i < 500; ++i) {
      std::string junk(1 + rng() % 2000, '\0');
      for (char& c : junk) c = static_cast<char>(rng());
      if (i % 5 == 0) static_cast<void>(raw.send(zmq::str_buffer("a"), zmq::send_flags::sndmore));
      if (i % 10 == 0) static_cast<void>(raw.send(zmq::str_buffer("b"), zmq::send_flags::sndmore));
      static_cast<void>(raw.send(zmq::buffer(junk), zmq::send_flags::none));
      b.io.restart();
      b.io.poll_one();
    }
    REQUIRE(b.until([&] { return pinger.done(); }));
    REQUIRE(b.until([&] { return echo.garbage == 400; }));
    CHECK(router.port->counters().malformed == 100);
    // Longer than any frame may be: the connection is cut, and only that one.
    pinger.total += 1'000;
    pinger.fill();
    router.links.clear();
    raw.send(zmq::message_t(limits::kFrameBytes + 1), zmq::send_flags::none);
    REQUIRE(b.until([&] { return router.saw(Link::kDown); }));
    REQUIRE(b.until([&] { return pinger.done(); }));
    CHECK(echo.lost == 0);
  }

  TEST_CASE("bytes that are not even ZeroMQ disturb nobody") {
    Bench b;
    const KeyPair w1 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}}));
    Echo echo(router);
    Pinger pinger(b.curve_dealer(router.port->bound_endpoint(), w1), 2'000);
    REQUIRE(b.until([&] { return pinger.peer.saw(Link::kUp); }));
    pinger.fill();
    const std::string endpoint = router.port->bound_endpoint();
    const auto port =
        static_cast<unsigned short>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
    std::mt19937_64 rng(2);
    for (int i = 0; i < 40; ++i) {
      boost::asio::ip::tcp::socket s(b.io);
      s.connect({boost::asio::ip::address_v4::loopback(), port});
      std::string junk =
          i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03", 11);
      for (int k = 0; k < 200; ++k) junk += static_cast<char>(rng());
      // The other side may have hung up already: that is its right.
      boost::system::error_code ignored;
      boost::asio::write(s, boost::asio::buffer(junk), ignored);
      b.io.restart();
      b.io.poll_one();
    }
    REQUIRE(b.until([&] { return pinger.done(); }));
    CHECK(echo.lost == 0);
    CHECK(echo.garbage == 0);
  }
}
