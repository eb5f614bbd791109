#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "worker/selftest/attack/attack.h"

namespace attack {
// Attacks by what sockets hold: memory of the kernel's that is no process's.

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

// The bytes that the kernel keeps for it, both ways.
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
  raise_descriptors();
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

// Ways out by the network, where there is to be none.

namespace {
sockaddr_in at(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

void try_tcp(const char* host, int port) {
  const sockaddr_in address = at(host, port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // Under way already means that there is a road.
  if (rc == 0 || errno == EINPROGRESS) {
    pollfd wait{fd, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    const bool came = ::poll(&wait, 1, 300) == 1;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (!came || error == 0) escaped("a road to %s:%d", host, port);
  }
  ::close(fd);
}

void try_datagram(int type, int protocol, const char* host, const char* what) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return;
  const sockaddr_in address = at(host, 53);
  char bytes[64] = {8, 0};
  if (0 < ::sendto(fd, bytes, sizeof bytes, 0, reinterpret_cast<const sockaddr*>(&address),
                   sizeof address))
    escaped("%s left for %s", what, host);
  ::close(fd);
}

void try_abstract(const char* name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(name);
  std::memcpy(address.sun_path + 1, name, length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0)
    escaped("a socket of the host without a path answers");
  ::close(fd);
}
}  // namespace

// port=N: somebody listens there on the host's loopback.  abstract=NAME: and there.
void network(const Arguments& a) {
  const int port = static_cast<int>(a.number("port", 22));
  try_tcp("127.0.0.1", port);
  try_tcp("169.254.169.254", 80);  // clouds tell of credentials here
  try_tcp("8.8.8.8", 443);
  try_tcp(a.text("host", "10.0.0.1"), port);
  try_datagram(SOCK_DGRAM, 0, "8.8.8.8", "a DNS question");
  try_datagram(SOCK_DGRAM, 0, "169.254.169.254", "a datagram");
  try_datagram(SOCK_DGRAM, IPPROTO_ICMP, "8.8.8.8", "an ICMP echo");
  try_datagram(SOCK_RAW, IPPROTO_ICMP, "8.8.8.8", "a raw ICMP packet");
  if (0 <= ::socket(AF_INET, SOCK_RAW, IPPROTO_RAW)) escaped("a raw socket");
  if (0 <= ::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) escaped("a packet socket");
  try_abstract(a.text("abstract", "/tmp/.X11-unix/X0"));
  char buffer[4096];
  ifconf all{};
  all.ifc_len = sizeof buffer;
  all.ifc_buf = buffer;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (0 <= fd && ::ioctl(fd, SIOCGIFCONF, &all) == 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(all.ifc_len) / sizeof(ifreq); ++i)
      if (std::strcmp(all.ifc_req[i].ifr_name, "lo") != 0)
        escaped("the interface %s", all.ifc_req[i].ifr_name);
  }
}
}  // namespace attack
