#include "tests/bench/dispatch_bench_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/wire/codec.h"

namespace proctor::bench {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kFirstSync(100);  // until the coordinator says when

class FakeWorker {
 public:
  FakeWorker(asio::io_context& io, std::string name, const FleetOptions& options,
             FleetReport& report)
      : io_(io),
        name_(std::move(name)),
        options_(options),
        report_(report),
        timer_(io),
        digest_(sha256(name_)) {}

  bool open(zmq::context_t& zmq, const std::string& endpoint, const wire::KeyPair* keys) {
    wire::ZmqPort::Options port;
    port.endpoint = endpoint;
    port.send_hwm = port.receive_hwm = 1 << 16;
    if (keys != nullptr) port.curve_client = {{*keys, options_.server_public_z85}};
    auto opened =
        wire::ZmqPort::open(io_, zmq, std::move(port), [this](const wire::PeerMessage& m) {
          auto message = wire::decode(m.bytes);
          if (!message.ok()) return failed(message.error().detail);
          std::visit([this](const auto& x) { on(x); }, *message);
        });
    if (!opened.ok()) {
      failed(opened.error().detail);
      return false;
    }
    port_ = std::move(opened).value();
    sync();
    return true;
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

  void sync() {
    wire::Sync m;
    m.worker = WorkerId(name_);
    m.boot = BootId(static_cast<std::uint64_t>(::getpid()));
    m.version = "bench";
    m.epoch_seen = epoch_;
    m.slots = draining_ ? 0 : options_.slots;
    m.features = {"sandbox:null"};
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
      unacked_.insert(run.attempt);
      result(run.attempt);
    }
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
    if (!draining_ || !unacked_.empty() || left_) return;
    send(wire::Leave{WorkerId(name_), BootId(static_cast<std::uint64_t>(::getpid()))});
    left_ = true;
    timer_.cancel();
    asio::post(io_, [this] { port_.reset(); });  // lingers until the goodbye is out
  }

  asio::io_context& io_;
  const std::string name_;
  const FleetOptions& options_;
  FleetReport& report_;
  asio::steady_timer timer_;
  const Digest digest_;
  std::unique_ptr<wire::ZmqPort> port_;
  std::chrono::milliseconds next_sync_ = kFirstSync;
  Epoch epoch_;
  std::set<AttemptId> unacked_;
  bool draining_ = false, left_ = false, bad_ = false;
};

int run_fleet(const FleetOptions& options, const std::string& endpoint, int report_fd) {
  asio::io_context io(1);
  zmq::context_t zmq(1);
  FleetReport report;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  bool good = true;
  for (std::uint32_t i = 0; i < options.workers && good; ++i) {
    workers.push_back(
        std::make_unique<FakeWorker>(io, "worker-" + std::to_string(i), options, report));
    good = workers.back()->open(zmq, endpoint, options.keys.empty() ? nullptr : &options.keys[i]);
  }
  if (good) io.run();  // ends by itself when all have left
  for (const auto& w : workers) good = good && w->left() && !w->bad();
  workers.clear();
  const bool written = ::write(report_fd, &report, sizeof report) == sizeof report;
  return good && written ? 0 : 1;
}

}  // namespace

std::int64_t mono_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::optional<Fleet> Fleet::start(const FleetOptions& options) {
  std::array<int, 2> down{}, up{};
  // Close-on-exec: a redis-server started later must not hold an end of ours.
  if (::pipe2(down.data(), O_CLOEXEC) != 0 || ::pipe2(up.data(), O_CLOEXEC) != 0)
    return std::nullopt;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child != 0) {
    ::close(down[0]);
    ::close(up[1]);
    return Fleet(child, down[1], up[0]);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(down[1]);
  ::close(up[0]);
  std::string endpoint;
  std::array<char, 256> part{};
  for (ssize_t n = 0; (n = ::read(down[0], part.data(), part.size())) > 0;)
    endpoint.append(part.data(), static_cast<std::size_t>(n));
  ::_exit(endpoint.empty() ? 1 : run_fleet(options, endpoint, up[1]));
}

Fleet::Fleet(Fleet&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      to_child_(std::exchange(other.to_child_, -1)),
      from_child_(std::exchange(other.from_child_, -1)) {}

Fleet::~Fleet() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  for (const int fd : {to_child_, from_child_})
    if (fd >= 0) ::close(fd);
}

void Fleet::connect(const std::string& endpoint) {
  (void)!::write(to_child_, endpoint.data(), endpoint.size());
  ::close(std::exchange(to_child_, -1));
}

std::optional<std::string> Fleet::died() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0 || (info.si_code == CLD_EXITED && info.si_status == 0))
    return std::nullopt;
  return std::string("the workers' process ended: ") +
         (info.si_code == CLD_EXITED ? "exit code " : "signal ") + std::to_string(info.si_status);
}

std::optional<FleetReport> Fleet::wait() {
  FleetReport report;
  const bool told = ::read(from_child_, &report, sizeof report) == sizeof report;
  int status = 0;
  const pid_t ended = ::waitpid(std::exchange(child_, -1), &status, 0);
  if (!told || ended < 0 || status != 0) return std::nullopt;
  return report;
}

}  // namespace proctor::bench
