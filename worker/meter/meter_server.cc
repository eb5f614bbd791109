#include "worker/meter/meter_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "worker/meter/meter_protocol.h"

namespace proctor {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{200};
constexpr std::size_t kLinesPerTurn = 32;                   // of one client, then the next
constexpr std::size_t kUnreadMax = std::size_t{256} << 10;  // answers a client leaves lying
constexpr int kLastTurns = 200;
constexpr std::size_t kReadChunk = std::size_t{16} << 10;

struct MeterServer::Impl {
  struct Client {
    UniqueFd fd;
    std::string in, out;
    bool closing = false;  // told why; cut off once that is sent
    bool ended = false;    // says nothing more
  };

  Impl(Meter& m, UniqueFd s, UniqueFd w) : meter(m), listener(std::move(s)), wake(std::move(w)) {}

  Meter& meter;
  UniqueFd listener, wake;
  std::vector<std::unique_ptr<Client>> clients;
  Clock::time_point second_began{}, next_tick{};
  std::size_t lines_this_second = 0;
  std::size_t first = 0;  // whose turn it is first
  std::jthread thread;

  void run(const std::stop_token& stop) {
    next_tick = second_began = Clock::now();
    while (!stop.stop_requested()) {
      const auto now = Clock::now();
      if (second_began + std::chrono::seconds(1) <= now) {
        second_began = now;
        lines_this_second = 0;
      }
      if (next_tick <= now) {
        next_tick = now + kTick;
        if (const std::string news = meter.tick(); !news.empty())
          for (const auto& c : clients) c->out += news;
      }
      wait();
      if (stop.stop_requested()) break;
      accept_all();
      serve();
      drop_gone();
    }
    // Its clients have ended, mostly; what they have said still counts.
    lines_this_second = 0;
    for (int turn = 0; turn < kLastTurns; ++turn) {
      accept_all();
      if (clients.empty()) return;
      serve();
      drop_gone();
    }
  }

  void drop_gone() {
    std::erase_if(clients, [](const auto& c) { return !c->fd.valid(); });
  }

  bool flooded() const { return kMeterLinesPerSecond <= lines_this_second; }
  static bool has_line(const Client& c) {
    return !c.closing && c.in.find('\n') != std::string::npos;
  }

  void wait() {
    const auto now = Clock::now();
    auto until = next_tick;
    if (flooded()) until = std::min(until, second_began + std::chrono::seconds(1));
    std::vector<pollfd> fds{{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    bool work = false;
    for (const auto& c : clients) {
      short events = 0;
      if (!c->closing && !c->ended && !flooded() && c->out.size() < kUnreadMax) events |= POLLIN;
      if (!c->out.empty()) events |= POLLOUT;
      work = work || (!flooded() && has_line(*c) && c->out.size() < kUnreadMax);
      // A hang-up is always reported: without a wish of ours it would turn this into a busy loop.
      fds.push_back({events == 0 ? -1 : c->fd.get(), events, 0});
    }
    const auto left = std::chrono::ceil<milliseconds>(until - now).count();
    ::poll(fds.data(), fds.size(),
           work ? 0 : static_cast<int>(std::clamp<std::int64_t>(left, 0, kTick.count())));
  }

  void accept_all() {
    for (;;) {
      UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) return;
      auto client = std::make_unique<Client>();
      client->fd = std::move(fd);
      if (clients.size() < kMeterClientsMax) {
        clients.push_back(std::move(client));
        continue;
      }
      const std::string full =
          meter_error_line("", std::to_string(kMeterClientsMax) + " clients are connected already");
      [[maybe_unused]] const ssize_t n =
          ::send(client->fd.get(), full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  void serve() {
    if (clients.empty()) return;
    first = (first + 1) % clients.size();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      Client& c = *clients[(first + i) % clients.size()];
      read_some(c);
      answer_some(c);
      write_some(c);
    }
  }

  void read_some(Client& c) {
    if (c.closing || c.ended || flooded() || kUnreadMax <= c.out.size()) return;
    if (kMeterLineBytes < c.in.size()) return;  // answered first
    std::array<char, kReadChunk> buffer;
    const ssize_t n = ::recv(c.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) {
      c.in.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      c.ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
      c.fd.reset();
    }
  }

  void answer_some(Client& c) {
    for (std::size_t i = 0; i < kLinesPerTurn && !flooded() && !c.closing; ++i) {
      if (kUnreadMax <= c.out.size()) return;
      const std::size_t end = c.in.find('\n');
      if (std::min(end, c.in.size()) > kMeterLineBytes) {
        refuse(c, "a line longer than " + std::to_string(kMeterLineBytes) + " bytes");
      } else if (end != std::string::npos) {
        ++lines_this_second;
        c.out += meter.answer(std::string_view(c.in).substr(0, end));
        c.in.erase(0, end + 1);
      } else {
        if (c.ended && !c.in.empty()) refuse(c, "the last line has no end");
        c.closing = c.closing || c.ended;
        return;
      }
    }
  }

  static void refuse(Client& c, const std::string& why) {
    c.out += meter_error_line("", why);
    c.in = {};
    c.closing = true;
  }

  static void write_some(Client& c) {
    while (c.fd.valid() && !c.out.empty()) {
      const ssize_t n = ::send(c.fd.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        c.out.erase(0, static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR) {
        c.fd.reset();
      }
    }
    if (c.closing) c.fd.reset();
  }
};

MeterServer::MeterServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<MeterServer>> MeterServer::start(const fs::path& dir, Meter& meter) {
  PROCTOR_TRY(UniqueFd listener,
              listen_in(dir, static_cast<int>(kMeterClientsMax), "metering socket"));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("metering socket: eventfd", errno);
  auto impl = std::make_unique<Impl>(meter, std::move(listener), std::move(wake));
  impl->thread = std::jthread([i = impl.get()](const std::stop_token& stop) { i->run(stop); });
  return std::unique_ptr<MeterServer>(new MeterServer(std::move(impl)));
}

MeterServer::~MeterServer() {
  impl_->thread.request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(impl_->wake.get(), &one, sizeof one);
  impl_->thread.join();
}
}  // namespace proctor
