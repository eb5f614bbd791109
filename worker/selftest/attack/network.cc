// Ways out by the network, where there is to be none.
#include <arpa/inet.h>
#include <linux/if_packet.h>
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
