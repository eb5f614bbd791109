#include "worker/gateway/wire_io.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace proctor {

std::uint64_t micros_since(SteadyClock::time_point since) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - since).count());
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

bool has_left(int fd) {
  pollfd one{fd, 0, 0};
  return 0 < ::poll(&one, 1, 0) && (one.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace proctor
