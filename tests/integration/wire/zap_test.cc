#include <algorithm>

#include "bench.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

AllowList allow(std::initializer_list<std::pair<const KeyPair*, const char*>> keys) {
  AllowList list;
  for (const auto& [key, name] : keys) REQUIRE(list.add(key->public_z85, name).ok());
  return list;
}

// One ZAP request, part by part, as libzmq (or something that is not libzmq) would send it.
std::vector<std::string> ask(zmq::context_t& context, const std::vector<std::string>& parts) {
  zmq::socket_t request(context, zmq::socket_type::req);
  request.set(zmq::sockopt::linger, 0);
  request.set(zmq::sockopt::rcvtimeo, 10'000);
  request.connect("inproc://zeromq.zap.01");
  for (std::size_t i = 0; i < parts.size(); ++i)
    request.send(zmq::buffer(parts[i]),
                 i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  std::vector<std::string> reply;
  zmq::message_t part;
  do {
    REQUIRE(request.recv(part, zmq::recv_flags::none).has_value());
    reply.push_back(part.to_string());
  } while (part.more());
  return reply;
}

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("a worker with a listed key is known by the name of the list") {
    Bench b;
    const KeyPair w1 = new_key();
    const KeyPair w2 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}, {&w2, "w2"}}));
    Peer& one = b.curve_dealer(router.port->bound_endpoint(), w1);
    Peer& two = b.curve_dealer(router.port->bound_endpoint(), w2);
    REQUIRE(b.until([&] { return one.saw(Link::kUp) && two.saw(Link::kUp); }));
    REQUIRE(one.port->send("", "from w1"));
    REQUIRE(two.port->send("", "from w2"));
    REQUIRE(b.until([&] { return router.got.size() == 2; }));
    for (const PeerMessage& m : router.got) {
      CHECK(m.bytes == "from " + m.user);
      REQUIRE(router.port->send(m.peer, "to " + m.user));
    }
    REQUIRE(b.until([&] { return one.got.size() == 1 && two.got.size() == 1; }));
    CHECK(one.got[0].bytes == "to w1");
    CHECK(two.got[0].bytes == "to w2");
    CHECK(b.zap->denials() == 0);
  }

  TEST_CASE("a key that is not listed is refused and the reason names it") {
    Bench b;
    const KeyPair w1 = new_key();
    const KeyPair stranger = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}}));
    Peer& bad = b.curve_dealer(router.port->bound_endpoint(), stranger);
    REQUIRE(b.until([&] { return bad.saw(Link::kRefused) && router.saw(Link::kRefused); }));
    CHECK_FALSE(bad.saw(Link::kUp));
    CHECK_FALSE(bad.port->send("", "let me in"));
    REQUIRE(1 <= b.zap->denials());
    CHECK(b.denied().at(0) ==
          "peer at 127.0.0.1: key " + stranger.public_z85 + " is not in the allow-list");
    Peer& good = b.curve_dealer(router.port->bound_endpoint(), w1);
    REQUIRE(b.until([&] { return good.saw(Link::kUp); }));
    REQUIRE(good.port->send("", "hello"));
    REQUIRE(b.until([&] { return router.got.size() == 1; }));
    CHECK(router.got[0].user == "w1");
  }

  TEST_CASE("a refused worker gets in once its key is listed") {
    Bench b;
    const KeyPair late = new_key();
    Peer& router = b.curve_router({});
    Peer& dealer = b.curve_dealer(router.port->bound_endpoint(), late);
    REQUIRE(b.until([&] { return dealer.saw(Link::kRefused); }));
    b.zap->replace(allow({{&late, "late"}}));
    REQUIRE(b.until([&] { return dealer.saw(Link::kUp); }));
    REQUIRE(dealer.port->send("", "at last"));
    REQUIRE(b.until([&] { return router.got.size() == 1; }));
    CHECK(router.got[0].user == "late");
  }

  TEST_CASE("a peer without keys or with a password is refused") {
    Bench b;
    const KeyPair w1 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}}));
    zmq::socket_t null_peer(b.context, zmq::socket_type::dealer);
    null_peer.set(zmq::sockopt::linger, 0);
    null_peer.connect(router.port->bound_endpoint());
    null_peer.send(zmq::str_buffer("hello"), zmq::send_flags::none);
    REQUIRE(b.until([&] { return router.saw(Link::kRefused); }));
    CHECK(router.links.at(0).second.find("security mechanism") != std::string::npos);
    router.links.clear();
    zmq::socket_t plain_peer(b.context, zmq::socket_type::dealer);
    plain_peer.set(zmq::sockopt::linger, 0);
    plain_peer.set(zmq::sockopt::plain_username, "w1");
    plain_peer.set(zmq::sockopt::plain_password, "w1");
    null_peer.close();
    plain_peer.connect(router.port->bound_endpoint());
    plain_peer.send(zmq::str_buffer("hello"), zmq::send_flags::none);
    REQUIRE(b.until([&] { return router.saw(Link::kRefused); }));
    CHECK(router.got.empty());
    CHECK(2 <= router.port->counters().refused);
  }

  TEST_CASE("a worker does not talk to a coordinator with another key") {
    Bench b;
    const KeyPair w1 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}}));
    ZmqPort::Options o;
    o.endpoint = router.port->bound_endpoint();
    o.curve_client = ZmqPort::CurveClient{w1, new_key().public_z85};
    Peer& misled = b.open(o);
    REQUIRE(b.until([&] { return router.saw(Link::kRefused) && misled.saw(Link::kDown); }));
    CHECK_FALSE(misled.saw(Link::kUp));
    CHECK_FALSE(misled.port->send("", "secret"));
    // Its address, not ours; where its descriptor is closed already, that it was a peer.
    const std::string told = router.links.at(0).second;
    const std::string why = ": handshake failed: it has another key for this coordinator than ours";
    CHECK_MESSAGE((told == "127.0.0.1" + why || told == "a peer" + why), told);
    CHECK(1 <= router.port->counters().refused);
  }

  TEST_CASE("a revoked key is silenced while it is connected and another name is not") {
    Bench b;
    const KeyPair w1 = new_key();
    const KeyPair w2 = new_key();
    Peer& router = b.curve_router(allow({{&w1, "w1"}, {&w2, "w2"}}));
    Peer& one = b.curve_dealer(router.port->bound_endpoint(), w1);
    Peer& two = b.curve_dealer(router.port->bound_endpoint(), w2);
    REQUIRE(b.until([&] { return one.saw(Link::kUp) && two.saw(Link::kUp); }));
    REQUIRE(one.port->send("", "before"));
    REQUIRE(b.until([&] { return router.got.size() == 1; }));
    const std::string peer = router.got[0].peer;
    // The name moves to a new key: the old connection must not keep it.
    const KeyPair rotated = new_key();
    b.zap->replace(allow({{&rotated, "w1"}, {&w2, "w2"}}));
    REQUIRE(one.port->send("", "after"));
    REQUIRE(two.port->send("", "still here"));
    REQUIRE(b.until([&] { return router.saw(Link::kRevoked) && router.got.size() == 2; }));
    CHECK(router.got[1].user == "w2");
    CHECK(router.port->counters().revoked == 1);
    const bool named = std::any_of(router.links.begin(), router.links.end(), [&](const auto& l) {
      return l.first == Link::kRevoked && l.second == peer;
    });
    CHECK(named);
    Peer& back = b.curve_dealer(router.port->bound_endpoint(), rotated);
    REQUIRE(b.until([&] { return back.saw(Link::kUp); }));
    REQUIRE(back.port->send("", "new key"));
    REQUIRE(b.until([&] { return router.got.size() == 3; }));
    CHECK(router.got[2].user == "w1");
  }

  TEST_CASE("the handler refuses every request but a right one") {
    Bench b;
    const KeyPair w1 = new_key();
    b.curve_router(allow({{&w1, "w1"}}));
    const std::string raw(32, '\x07');
    const struct {
      std::vector<std::string> request;
      const char* status;
    } rows[] = {
        {{"1.0", "1", "proctor", "127.0.0.1", "", "NULL"}, "400"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "PLAIN", "w1", "w1"}, "400"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "GSSAPI", "w1"}, "400"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "CURVE", raw}, "400"},
        {{"1.0", "1", "elsewhere", "127.0.0.1", "", "CURVE", raw}, "400"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "CURVE", "short"}, "500"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "CURVE"}, "500"},
        {{"1.0", "1", "proctor", "127.0.0.1", "", "CURVE", raw, "more"}, "500"},
        {{"2.0", "1", "proctor", "127.0.0.1", "", "CURVE", raw}, "500"},
        {{"1.0", "1"}, "500"},
        {{""}, "500"},
        {std::vector<std::string>(40, "x"), "500"},
    };
    std::uint64_t denials = 0;
    for (const auto& row : rows) {
      CAPTURE(row.request.size());
      const std::vector<std::string> reply = ask(b.context, row.request);
      REQUIRE(reply.size() == 6);
      CHECK(reply[0] == "1.0");
      CHECK(reply[2] == row.status);
      CHECK(reply[4].empty());
      CHECK(b.zap->denials() == ++denials);
    }
    CHECK(b.denied().size() == denials);
  }

  TEST_CASE("one context has one handler") {
    Bench b;
    b.curve_router({});
    const auto second = ZapHandler::start(b.context, {}, {});
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == Errc::kConflict);
  }
}
