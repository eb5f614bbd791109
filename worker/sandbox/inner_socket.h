#pragma once
// Connections that the small programs inside sandboxes make, to a Unix socket that a mount shows
// and to ports of the loopback: without a library of ours, in the image of a stranger.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace proctor {
// The descriptor, closed on exec; negative: nobody is there.  Waits while the other's queue is
// full, which an unblocked socket cannot.
inline int connect_to_socket(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (sizeof address.sun_path <= std::strlen(path)) return -1;
  std::strcpy(address.sun_path, path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

// Does somebody accept connections at this address? Waits a second at most.  Async-signal-safe.
inline bool loopback_connects(int family, const sockaddr* to, socklen_t size) {
  constexpr int kConnectMs = 1'000;
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  bool done = ::connect(fd, to, size) == 0;
  if (!done && errno == EINPROGRESS) {
    pollfd ready{fd, POLLOUT, 0};
    int error = ETIMEDOUT;
    socklen_t length = sizeof error;
    if (::poll(&ready, 1, kConnectMs) == 1) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    done = error == 0;
  }
  ::close(fd);
  return done;
}

// Does somebody accept connections at a port of this network's loopback? Of IPv4 and IPv6; waits a
// second at most for each.  Async-signal-safe: the holder of a network asks it.
inline bool somebody_accepts(std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (loopback_connects(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4)) return true;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  return loopback_connects(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
}
}  // namespace proctor
