#pragma once
// A coordinator that does what it is told: answers Syncs, Wants and chunks truthfully, keeps what
// arrives, and says whatever a test wants said, sense or not.  One thread: until() turns the loop.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/base/result.h"
#include "common/contract/bundle.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "common/wire/zmq_port.h"

namespace proctor::testing {

class FakeCoordinator {
 public:
  FakeCoordinator(const fs::path& socket, std::uint64_t epoch_number,
                  std::string campaign_id = "camp1")
      : epoch(epoch_number), campaign(std::move(campaign_id)) {
    wire::ZmqPort::Options options;
    options.type = wire::ZmqPort::Type::kRouter;
    options.attach = wire::ZmqPort::Attach::kBind;
    options.endpoint = "ipc://" + socket.string();
    auto port = wire::ZmqPort::open(io_, zmq_, options, [this](wire::PeerMessage m) { on(m); });
    REQUIRE_MESSAGE(port.ok(), (port.ok() ? "" : port.error().detail));
    port_ = std::move(port).value();
  }

  template <class Predicate>
  [[nodiscard]] bool until(Predicate done, std::chrono::seconds bound = std::chrono::seconds(180)) {
    const auto end = std::chrono::steady_clock::now() + bound;
    while (!done() && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return done();
  }
  [[nodiscard]] bool connected() {
    return until([this] { return !syncs.empty(); });
  }
  [[nodiscard]] bool has_result(AttemptId id) {
    return until([this, id] { return results.contains(id); });
  }
  // Another Sync than those seen so far, said after everything sent to the worker until now.
  [[nodiscard]] bool next_sync() {
    const std::size_t now = syncs.size() + 1;  // one may be on its way already
    return until([this, now] { return now < syncs.size(); });
  }

  void say(const wire::Message& m) { say_bytes(wire::encode(m)); }
  void say_bytes(std::string bytes) { REQUIRE(port_->send(peer_, std::move(bytes))); }
  void offer(const Digest& digest, std::string bundle) { bundles[digest] = std::move(bundle); }
  void assign(const std::vector<wire::Assignment>& runs, const Digest& settings) {
    say(wire::Assign{Epoch(epoch), settings, runs});
  }

  std::uint64_t epoch;
  std::string campaign;
  bool acknowledges = true;
  bool drain = false;
  std::map<Digest, std::string> bundles;
  std::vector<wire::Sync> syncs;
  std::set<BootId> buried;                      // workers that a test has killed
  std::vector<wire::ResultMessage> deliveries;  // in order, repeated ones too
  std::map<AttemptId, wire::ResultMessage> results;
  std::map<AttemptId, std::string> archives;
  std::set<AttemptId> durable;
  std::size_t chunks = 0, wants = 0, leaves = 0;
  std::vector<AttemptId> spooled;  // by the last Leave

 private:
  void on(const wire::PeerMessage& m) {
    peer_ = m.peer;
    auto message = wire::decode(m.bytes);
    REQUIRE_MESSAGE(message.ok(), (message.ok() ? "" : message.error().detail));
    std::visit(Overload{[this](const wire::Sync& s) { answer(s); },
                        [this](const wire::Want& w) { answer(w); },
                        [this](const wire::ArchiveChunk& c) { answer(c); },
                        [this](const wire::ResultMessage& r) { answer(r); },
                        [this](const wire::Leave& l) {
                          ++leaves;
                          spooled = l.spooled;
                        },
                        [](const wire::Progress&) {},
                        [](const auto&) { FAIL("a coordinator's word from a worker"); }},
               *message);
  }
  void answer(const wire::Sync& s) {
    if (buried.contains(s.boot)) return;  // on its way when its worker was killed
    syncs.push_back(s);
    wire::SyncReply reply;
    reply.epoch = Epoch(epoch);
    reply.campaign = campaign;
    reply.next_sync_ms = 100;
    reply.drain = drain;
    reply.ticket = s.ticket;
    for (const AttemptId id : s.unacked) {
      if (durable.contains(id)) {
        reply.acked.push_back(id);
      } else if (acknowledges && asks_again(s.boot, id)) {
        reply.resend.push_back(id);
      }
    }
    reply_with(reply);
  }
  // A result may be on its way for several Syncs; asked for again it would come twice.
  bool asks_again(BootId boot, AttemptId id) {
    constexpr std::size_t kPatience = 30;  // Syncs: three seconds
    std::size_t& last = asked_[{boot, id}];
    if (last != 0 && ++last < kPatience) return false;
    last = 1;
    return true;
  }
  void answer(const wire::Want& w) {
    ++wants;
    for (const Digest& digest : w.digests) {
      const auto it = bundles.find(digest);
      if (it != bundles.end()) reply_with(wire::Bundle{digest, it->second, 0, 0});
    }
  }
  void answer(const wire::ArchiveChunk& c) {
    ++chunks;
    std::string& bytes = archives[c.attempt];
    if (c.offset == 0) bytes.clear();
    CHECK(c.offset == bytes.size());
    bytes += c.bytes;
    reply_with(wire::ChunkAck{c.attempt, bytes.size()});
  }
  void answer(const wire::ResultMessage& r) {
    deliveries.push_back(r);
    results[r.attempt] = r;
    if (!acknowledges) return;
    durable.insert(r.attempt);
    reply_with(wire::Ack{{r.attempt}});
  }

  // An answer to somebody who may have gone meanwhile.
  void reply_with(const wire::Message& m) {
    static_cast<void>(port_->send(peer_, wire::encode(m)));
  }

  boost::asio::io_context io_;
  zmq::context_t zmq_{1};
  std::unique_ptr<wire::ZmqPort> port_;
  std::string peer_;
  std::map<std::pair<BootId, AttemptId>, std::size_t> asked_;
};

}  // namespace proctor::testing
