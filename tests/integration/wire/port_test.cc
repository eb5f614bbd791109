#include "bench.h"
#include "common/wire/codec.h"

using namespace proctor;
using namespace proctor::wire;

TEST_SUITE("wire") {
  TEST_CASE("a message and its answer travel over ipc") {
    Bench b;
    Peer& router = b.ipc_router();
    Peer& dealer = b.dealer(router.port->bound_endpoint());
    REQUIRE(b.until([&] { return dealer.saw(Link::kUp); }));
    REQUIRE(dealer.port->send("", encode(Leave{WorkerId("w1"), BootId(7)})));
    REQUIRE(b.until([&] { return router.got.size() == 1; }));
    CHECK(router.got[0].user.empty());
    CHECK_FALSE(router.got[0].peer.empty());
    CHECK(decode(router.got[0].bytes).ok());
    REQUIRE(router.port->send(router.got[0].peer, std::string(100'000, 'x')));
    REQUIRE(b.until([&] { return dealer.got.size() == 1; }));
    CHECK(dealer.got[0].peer.empty());
    CHECK(dealer.got[0].bytes == std::string(100'000, 'x'));
  }

  TEST_CASE("a port refuses options that are unsafe or do not fit") {
    Bench b;
    ZmqPort::Options tcp;
    tcp.type = Type::kRouter;
    tcp.attach = Attach::kBind;
    tcp.endpoint = "tcp://127.0.0.1:*";
    const auto refused = [&](const ZmqPort::Options& o) {
      const Result<Peer*> peer = b.try_open(o);
      return !peer.ok() && peer.error().code == Errc::kInvalid;
    };
    CHECK(refused(tcp));  // no keys
    ZmqPort::Options o = tcp;
    o.insecure_loopback = true;
    CHECK_FALSE(refused(o));
    o = tcp;
    o.curve_server = ZmqPort::CurveServer{b.server_key, nullptr};
    CHECK(refused(o));  // nobody would check the keys
    o = tcp;
    o.curve_client = ZmqPort::CurveClient{b.server_key, b.server_key.public_z85};
    CHECK(refused(o));
    o = tcp;
    o.insecure_loopback = true;
    o.routing_id = "router";
    CHECK(refused(o));
    o = tcp;
    o.insecure_loopback = true;
    o.send_hwm = 0;
    CHECK(refused(o));
  }

  TEST_CASE("an address in use is a conflict") {
    Bench b;
    ZmqPort::Options o;
    o.type = Type::kRouter;
    o.attach = Attach::kBind;
    o.endpoint = "tcp://127.0.0.1:*";
    o.insecure_loopback = true;
    Peer& first = b.open(o);
    o.endpoint = first.port->bound_endpoint();
    const Result<Peer*> second = b.try_open(o);
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == Errc::kConflict);
  }

  TEST_CASE("sending to nobody says so at once") {
    Bench b;
    Peer& router = b.ipc_router();
    CHECK_FALSE(router.port->send("stranger", "hello"));
    CHECK_FALSE(router.port->send("", "hello"));
    CHECK(router.port->counters().unreachable == 2);
    Peer& dealer = b.dealer(router.port->bound_endpoint() + ".absent");
    CHECK_FALSE(dealer.port->send("", "hello"));
    CHECK(dealer.port->counters().would_block == 1);
  }

  TEST_CASE("a coordinator notices that a worker went and finds out which") {
    Bench b;
    Peer& router = b.ipc_router();
    Peer& stays = b.dealer(router.port->bound_endpoint());
    Peer& goes = b.dealer(router.port->bound_endpoint());
    REQUIRE(b.until([&] { return stays.saw(Link::kUp) && goes.saw(Link::kUp); }));
    REQUIRE(stays.port->send("", "stays"));
    REQUIRE(goes.port->send("", "goes"));
    REQUIRE(b.until([&] { return router.got.size() == 2; }));
    const bool in_order = router.got[0].bytes == "stays";
    const std::string kept = router.got[in_order ? 0 : 1].peer;
    const std::string lost = router.got[in_order ? 1 : 0].peer;
    CHECK(router.port->probe(kept));
    CHECK(router.port->probe(lost));
    b.settle();
    CHECK(stays.got.empty());  // a probe is nobody's message
    goes.port.reset();
    REQUIRE(b.until([&] { return router.saw(Link::kDown); }));
    REQUIRE(b.until([&] { return !router.port->probe(lost); }));
    CHECK(router.port->probe(kept));
    CHECK_FALSE(router.port->send(lost, "hello"));
    CHECK(router.port->counters().malformed == 0);
  }

  TEST_CASE("a worker sees its coordinator go and come back") {
    Bench b;
    Peer& first = b.ipc_router();
    const std::string endpoint = first.port->bound_endpoint();
    Peer& dealer = b.dealer(endpoint);
    REQUIRE(b.until([&] { return dealer.saw(Link::kUp); }));
    first.port.reset();
    REQUIRE(b.until([&] { return dealer.saw(Link::kDown); }));
    // The pipe is dismantled a moment after the event.
    REQUIRE(b.until([&] { return !dealer.port->send("", "into the void"); }));
    dealer.links.clear();
    Peer& second = b.ipc_router();
    REQUIRE(second.port->bound_endpoint() == endpoint);
    REQUIRE(b.until([&] { return dealer.saw(Link::kUp); }));
    REQUIRE(dealer.port->send("", "again"));
    REQUIRE(b.until([&] { return !second.got.empty(); }));
    CHECK(second.got.back().bytes == "again");
  }

  TEST_CASE("a peer that does not read fills its own queue and nobody else's") {
    Bench b;
    Peer& router = b.ipc_router();
    Peer& reader = b.dealer(router.port->bound_endpoint());
    zmq::socket_t sleeper(b.context, zmq::socket_type::dealer);
    sleeper.set(zmq::sockopt::linger, 0);
    sleeper.set(zmq::sockopt::rcvhwm, 10);
    sleeper.connect(router.port->bound_endpoint());
    sleeper.send(zmq::str_buffer("sleeper"), zmq::send_flags::none);
    REQUIRE(b.until([&] { return reader.saw(Link::kUp) && router.got.size() == 1; }));
    REQUIRE(reader.port->send("", "reader"));
    REQUIRE(b.until([&] { return router.got.size() == 2; }));
    const std::string asleep = router.got[0].peer;
    const std::string awake = router.got[1].peer;
    int accepted = 0;
    while (accepted < 100'000 && router.port->send(asleep, std::string(10'000, 'x'))) ++accepted;
    CHECK(0 < accepted);
    CHECK(accepted < 100'000);
    CHECK(router.port->counters().would_block == 1);
    CHECK(router.port->probe(asleep));  // full is not gone
    REQUIRE(router.port->send(awake, "hello"));
    CHECK(b.until([&] { return reader.got.size() == 1; }));
  }

  TEST_CASE("a second peer cannot take the routing id of the first") {
    Bench b;
    Peer& router = b.ipc_router();
    ZmqPort::Options o;
    o.endpoint = router.port->bound_endpoint();
    o.routing_id = "w1";
    Peer& first = b.open(o);
    REQUIRE(b.until([&] { return first.saw(Link::kUp); }));
    REQUIRE(first.port->send("", "first"));
    REQUIRE(b.until([&] { return router.got.size() == 1; }));
    CHECK(router.got[0].peer == "w1");
    Peer& second = b.open(o);
    REQUIRE(b.until([&] { return second.saw(Link::kUp); }));
    static_cast<void>(second.port->send("", "second"));
    b.settle();
    REQUIRE(router.port->send("w1", "for the first"));
    REQUIRE(b.until([&] { return first.got.size() == 1; }));
    CHECK(second.got.empty());
    CHECK(router.got.size() == 1);
  }
}
