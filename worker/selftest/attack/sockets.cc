// Attacks by what sockets hold: memory of the kernel's that is no process's.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "worker/selftest/attack/attack.h"

namespace attack {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kSocketsMost = 4'000;
constexpr int kRefusals = 50;
constexpr int kQueue = 4 << 20;
constexpr std::size_t kDatagram = 60'000;
char block[kMiB];

int socket_of(int family, int type) {
  const int fd = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kQueue, sizeof kQueue);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kQueue, sizeof kQueue);
  return fd;
}

// What the kernel keeps for it, both ways.
std::size_t held_by(int fd) {
  std::uint32_t info[SK_MEMINFO_VARS] = {};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size) != 0) return 0;
  return std::size_t{info[SK_MEMINFO_RMEM_ALLOC]} + info[SK_MEMINFO_WMEM_QUEUED] +
         info[SK_MEMINFO_WMEM_ALLOC];
}

// A bad request, which its answer repeats.
int netlink_full() {
  const int fd = socket_of(AF_NETLINK, SOCK_RAW);
  if (fd < 0) return fd;
  nlmsghdr head{};
  head.nlmsg_len = kMiB;
  head.nlmsg_type = 9'999;
  head.nlmsg_flags = NLM_F_REQUEST;
  std::memcpy(block, &head, sizeof head);
  for (int i = 0; i < 7 && ::send(fd, block, sizeof block, 0) == ssize_t{kMiB}; ++i) {
  }
  return fd;
}

sockaddr_in loopback() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  return at;
}

// Sends to itself, and never reads.
int udp_full() {
  const int fd = socket_of(AF_INET, SOCK_DGRAM);
  sockaddr_in at = loopback();
  socklen_t size = sizeof at;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return -1;
  for (int i = 0; i < 100; ++i)
    ::sendto(fd, block, kDatagram, 0, reinterpret_cast<sockaddr*>(&at), size);
  return fd;
}

// A datagram that is begun and never sent.
int udp_begun() {
  const int fd = socket_of(AF_INET, SOCK_DGRAM);
  sockaddr_in at = loopback();
  at.sin_port = ::htons(9);
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      ::send(fd, block, kDatagram, MSG_MORE) < 0)
    return -1;
  return fd;
}

// The other end of what it returns is given to `kept`.
int tcp_full(int& kept) {
  const int listener = socket_of(AF_INET, SOCK_STREAM);
  sockaddr_in at = loopback();
  socklen_t size = sizeof at;
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return -1;
  const int fd = socket_of(AF_INET, SOCK_STREAM);
  ::connect(fd, reinterpret_cast<sockaddr*>(&at), size);
  kept = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  for (int i = 0; i < 20; ++i) ::send(fd, block, sizeof block, MSG_NOSIGNAL);
  return fd;
}

}  // namespace

// Holds as much as it gets of `mib`, and then some time, in which somebody may find it too much.
void hold_sockets(const Arguments& a) {
  const char* kind = a.text("kind");
  const auto want = static_cast<std::size_t>(a.number("mib", 200)) * kMiB;
  const auto allowed = static_cast<std::size_t>(a.number("allowed", 0)) * kMiB;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::size_t held = 0;
  int refused = 0;  // one after the other: there is no more to be had
  for (int made = 0; made < kSocketsMost && refused < kRefusals && held < want; ++made) {
    int other = -1, fd = -1;
    if (std::strcmp(kind, "netlink") == 0) fd = netlink_full();
    if (std::strcmp(kind, "udp") == 0) fd = udp_full();
    if (std::strcmp(kind, "begun") == 0) fd = udp_begun();
    if (std::strcmp(kind, "tcp") == 0) fd = tcp_full(other);
    if (fd < 0) break;
    const std::size_t more = held_by(fd) + (other < 0 ? 0 : held_by(other));
    refused = more < kDatagram ? refused + 1 : 0;
    if (held <= allowed && allowed < held + more)
      beyond("%zu MiB in sockets of %s, where %zu are allowed", (held + more) / kMiB, kind,
             allowed / kMiB);
    held += more;
  }
  note("%zu MiB in sockets", held / kMiB);
  if (held <= allowed) return;
  ::sleep(3);
  escaped("%zu MiB in sockets of %s, where %zu are allowed", held / kMiB, kind, allowed / kMiB);
}

}  // namespace attack
