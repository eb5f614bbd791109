#include "worker/network/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace proctor {
Result<UniqueFd> new_signal(const std::string& what) {
  UniqueFd out(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!out.valid()) return errno_error(what + ": eventfd", errno);
  return out;
}

void wake(int signal) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(signal, &one, sizeof one);
}

Waited wait_for_fd(int fd, short events, int stop, SteadyClock::time_point until) {
  for (;;) {
    std::array<pollfd, 2> fds = {pollfd{stop, POLLIN, 0}, pollfd{fd, events, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    constexpr std::int64_t kSlice = 60'000;
    const int n =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, kSlice)));
    if (n < 0 && errno != EINTR) return Waited::kStopped;
    if (0 < n && fds[0].revents != 0) return Waited::kStopped;
    if (0 < n && fds[1].revents != 0) return Waited::kReady;
    if (until <= SteadyClock::now()) return Waited::kTime;
  }
}

Wrote write_all(int fd, std::string_view bytes, int stop, std::chrono::milliseconds idle) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (0 <= n) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Wrote::kGone;
    const Waited waited = wait_for_fd(fd, POLLOUT, stop, SteadyClock::now() + idle);
    if (waited == Waited::kStopped) return Wrote::kStopped;
    if (waited == Waited::kTime) return Wrote::kGone;
  }
  return Wrote::kAll;
}

Result<UniqueFd> connect_to_address(const IpAddress& address, std::uint16_t port, int stop,
                                    SteadyClock::time_point until, std::string_view what) {
  sockaddr_storage to{};
  socklen_t size = 0;
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.bytes.data() + 12, 4);
    std::memcpy(&to, &in, size = sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.bytes.data(), address.bytes.size());
    std::memcpy(&to, &in, size = sizeof in);
  }
  UniqueFd fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is not
    return Error{Errc::kUnavailable,
                 (what.empty() ? "" : "socket: ") + std::string(std::strerror(errno))};
  }
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how connect is called
  int error = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), size) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    if (wait_for_fd(fd.get(), POLLOUT, stop, until) != Waited::kReady)
      return Error{Errc::kUnavailable, "no connection in time"};
    socklen_t length = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return fd;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is not
  return Error{Errc::kUnavailable, std::string(what) + std::strerror(error)};
}

Result<std::unique_ptr<SocketServer>> SocketServer::open(const fs::path& dir,
                                                         std::size_t connections,
                                                         const std::string& what) {
  PROCTOR_TRY(UniqueFd listener, listen_in(dir, static_cast<int>(connections), what));
  PROCTOR_TRY(UniqueFd news, new_signal(what));
  return std::unique_ptr<SocketServer>(
      new SocketServer(std::move(listener), std::move(news), connections));
}

void SocketServer::start(int stop, Serve serve) {
  serve_ = std::move(serve);
  thread_ = std::jthread([this, stop] { run(stop); });
}

void SocketServer::run(int stop) {
  // OpenSSL writes to sockets whose peer may have gone.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  for (;;) {
    const bool full = connections_ <= clients_.size();
    std::array<pollfd, 3> fds = {pollfd{stop, POLLIN, 0}, pollfd{news_.get(), POLLIN, 0},
                                 pollfd{full ? -1 : listener_.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) break;
    if (fds[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = ::read(news_.get(), &count, sizeof count);
      clients_.remove_if([](const Client& c) { return c.ended.load(); });
    }
    if (fds[2].revents != 0) accept_one();
  }
  listener_.reset();
  clients_.clear();  // joins
}

void SocketServer::accept_one() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  Client& client = clients_.emplace_back();
  try {
    client.thread = std::jthread([this, &client, c = std::move(fd)]() mutable {
      serve_(std::move(c));
      client.ended = true;
      wake(news_.get());
    });
  } catch (const std::system_error&) {  // no thread to be had: as if nobody listened
    clients_.pop_back();
  }
}
}  // namespace proctor
