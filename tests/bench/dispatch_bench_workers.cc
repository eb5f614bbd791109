#include "tests/bench/dispatch_bench_workers.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <zmq.hpp>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "tests/bench/bench_support.h"

namespace proctor::bench {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kFirstSync(100);  // until the coordinator says when

wire::Sync greeting(const std::string& name, const FleetOptions& options) {
  wire::Sync m;
  m.worker = WorkerId(name);
  m.boot = BootId(static_cast<std::uint64_t>(::getpid()));
  m.version = "bench";
  m.slots = options.slots;
  m.features = {"sandbox:null"};
  return m;
}

// Takes slots and reads nothing of what it is told.
class DeafWorker {
 public:
  DeafWorker(asio::io_context& io, zmq::context_t& zmq, const std::string& name,
             const FleetOptions& options, const std::string& endpoint)
      : timer_(io),
        socket_(zmq, zmq::socket_type::dealer),
        sync_(wire::encode(greeting(name, options))) {
    constexpr int kReceived = 4'096;  // bytes; and one message: all else waits at the coordinator
    socket_.set(zmq::sockopt::rcvhwm, 1);
    socket_.set(zmq::sockopt::rcvbuf, kReceived);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
    sync();
  }

 private:
  void sync() {
    constexpr std::chrono::milliseconds kEvery(200);
    (void)socket_.send(zmq::buffer(sync_), zmq::send_flags::dontwait);
    timer_.expires_after(kEvery);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec) sync();
    });
  }
  asio::steady_timer timer_;
  zmq::socket_t socket_;
  const std::string sync_;
};

class FakeWorker {
 public:
  FakeWorker(asio::io_context& io, std::string name, const FleetOptions& options,
             FleetReport& report)
      : io_(io),
        name_(std::move(name)),
        options_(options),
        report_(report),
        timer_(io),
        work_timer_(io),
        flood_timer_(io),
        digest_(sha256(name_)) {}

  bool open(zmq::context_t& zmq, const std::string& endpoint, const wire::KeyPair* keys) {
    wire::ZmqPort::Options port;
    port.endpoint = endpoint;
    port.send_hwm = port.receive_hwm = 1 << 16;
    if (keys != nullptr) port.curve_client = {{*keys, options_.server_public_z85}};
    auto opened = wire::ZmqPort::open(
        io_, zmq, std::move(port),
        [this](const wire::PeerMessage& m) {
          auto message = wire::decode(m.bytes);
          if (!message.ok()) return failed(message.error().detail);
          std::visit([this](const auto& x) { on(x); }, *message);
        },
        [this](wire::ZmqPort::Link link, const std::string&) {
          if (link == wire::ZmqPort::Link::kUp && !left_) sync();
        });
    if (!opened.ok()) {
      failed(opened.error().detail);
      return false;
    }
    port_ = std::move(opened).value();
    sync();
    if (0 < options_.work_ms) work();
    return true;
  }
  void flood() {
    constexpr std::chrono::milliseconds kEvery(10);
    constexpr int kAtOnce = 20;
    const std::string progress = wire::encode(wire::Progress{epoch_, running()});
    for (int i = 0; i < kAtOnce && !left_ && port_->send("", progress); ++i) ++report_.flooded;
    flood_timer_.expires_after(kEvery);
    flood_timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec && !left_) flood();
    });
  }
  bool left() const { return left_; }
  bool bad() const { return bad_; }

 private:
  void failed(const std::string& why) {
    std::fprintf(stderr, "dispatch_bench: %s: %s\n", name_.c_str(), why.c_str());
    bad_ = true;
    io_.stop();
  }
  void send(const wire::Message& m) { (void)port_->send("", wire::encode(m)); }

  std::vector<wire::RunningAttempt> running() const {
    std::vector<wire::RunningAttempt> out;
    for (const auto& [attempt, until] : working_)
      if (out.size() < limits::kSlotsMax) out.push_back({attempt, wire::Stage::kAgent, true, {}});
    return out;
  }

  // Ends what has taken its time.
  void work() {
    constexpr std::chrono::milliseconds kEvery(100);
    const std::int64_t now = mono_ns();
    for (auto it = working_.begin(); it != working_.end();) {
      if (now < it->second) {
        ++it;
        continue;
      }
      unacked_.insert(it->first);
      result(it->first);
      it = working_.erase(it);
      --report_.holding;
    }
    work_timer_.expires_after(kEvery);
    work_timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec && !left_) work();
    });
  }

  void sync() {
    wire::Sync m = greeting(name_, options_);
    m.epoch_seen = epoch_;
    if (draining_) m.slots = 0;
    m.running = running();
    report_.last_sync_ns = mono_ns();
    for (const AttemptId& id : unacked_) {
      if (m.unacked.size() == limits::kBatchItems) break;
      m.unacked.push_back(id);
    }
    send(m);
    timer_.expires_after(next_sync_);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (!ec && !left_) sync();
    });
  }

  void result(const AttemptId& attempt) {
    wire::ResultMessage m;
    m.epoch = epoch_;
    m.attempt = attempt;
    m.outcome = RunOutcome::kFailure;
    m.rationale = "simulated: no work was done";
    m.report = digest_;
    m.usage.agent_ms = 1'000;
    m.usage.cpu_ms = 10;
    m.started_ms = m.finished_ms = wall_now().raw();
    send(m);
  }

  void on(const wire::Assign& m) {
    epoch_ = m.epoch;
    if (report_.first_assign_ns == 0) {
      report_.first_assign_ns = mono_ns();
      if (options_.interrupt_parent_at_assign) ::kill(::getppid(), SIGINT);
    }
    ++report_.frames;
    report_.assigned += m.runs.size();
    for (const wire::Assignment& run : m.runs) {
      note_newest(m.epoch, run.attempt.run);
      if (0 < options_.work_ms) {
        const bool added =
            working_.emplace(run.attempt, mono_ns() + options_.work_ms * 1'000'000LL).second;
        report_.holding += added ? 1 : 0;
      } else {
        unacked_.insert(run.attempt);
        result(run.attempt);
      }
    }
  }
  void note_newest(Epoch epoch, RunId run) {
    if (first_epoch_ == Epoch(0)) first_epoch_ = epoch;
    if (run.raw() < report_.newest_run) return;
    report_.newest_run = run.raw();
    if (first_epoch_ < epoch && report_.first_new_in_later_life_ns == 0)
      report_.first_new_in_later_life_ns = mono_ns();
  }
  void forget(const std::vector<AttemptId>& ids) {
    for (const AttemptId& id : ids) report_.acked += unacked_.erase(id);
    report_.last_ack_ns = mono_ns();
    leave_when_done();
  }
  void on(const wire::Ack& m) { forget(m.results); }
  void on(const wire::SyncReply& m) {
    epoch_ = m.epoch;
    next_sync_ = std::chrono::milliseconds(m.next_sync_ms);
    draining_ = draining_ || m.drain;
    for (const AttemptId& id : m.resend) result(id);
    forget(m.acked);
  }
  void on(const wire::Refuse& m) { failed("refused: " + m.reason); }
  template <class Other>
  void on(const Other&) {}  // nothing that can reach a worker without contracts

  void leave_when_done() {
    if (!draining_ || !unacked_.empty() || !working_.empty() || left_) return;
    send(wire::Leave{WorkerId(name_), BootId(static_cast<std::uint64_t>(::getpid()))});
    left_ = true;
    timer_.cancel();
    work_timer_.cancel();
    flood_timer_.cancel();
    asio::post(io_, [this] { port_.reset(); });  // lingers until the goodbye is out
  }

  asio::io_context& io_;
  const std::string name_;
  const FleetOptions& options_;
  FleetReport& report_;
  asio::steady_timer timer_, work_timer_, flood_timer_;
  const Digest digest_;
  std::unique_ptr<wire::ZmqPort> port_;
  std::chrono::milliseconds next_sync_ = kFirstSync;
  Epoch epoch_, first_epoch_;
  std::map<AttemptId, std::int64_t> working_;  // until when
  std::set<AttemptId> unacked_;
  bool draining_ = false, left_ = false, bad_ = false;
};

}  // namespace

int run_fleet(const FleetOptions& options, const std::string& endpoint, FleetReport& report) {
  asio::io_context io(1);
  zmq::context_t zmq(1);
  zmq.set(zmq::ctxopt::max_sockets, static_cast<int>(4 * options.workers + 64));
  std::vector<std::unique_ptr<FakeWorker>> workers;
  std::vector<std::unique_ptr<DeafWorker>> deaf;
  bool good = true;
  for (std::uint32_t i = 0; i < options.workers && good; ++i) {
    const std::string name = options.name + "-" + std::to_string(i);
    if (i < options.deaf) {
      deaf.push_back(std::make_unique<DeafWorker>(io, zmq, name, options, endpoint));
      continue;
    }
    workers.push_back(std::make_unique<FakeWorker>(io, name, options, report));
    good = workers.back()->open(zmq, endpoint, options.keys.empty() ? nullptr : &options.keys[i]);
    if (good && i < options.deaf + options.flooding) workers.back()->flood();
  }
  if (good) io.run();  // ends by itself when all have left
  for (const auto& w : workers) good = good && w->left() && !w->bad();
  return good ? 0 : 1;
}

}  // namespace proctor::bench
