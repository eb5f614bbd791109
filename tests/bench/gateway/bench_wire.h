#pragma once
// The little HTTP that a bench's provider and clients need: blocking, of peers that are ours.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "common/base/owned.h"
#include "tests/bench/bench_support.h"

namespace proctor::bench {

struct HttpMessage {
  std::string head, body;
};

inline bool send_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Waits for bytes; false: the peer has gone.
inline bool receive_more(int fd, std::string& said) {
  std::array<char, 65536> buffer;  // NOLINT: filled by recv
  const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (0 < n) said.append(buffer.data(), static_cast<std::size_t>(n));
  return 0 < n;
}

// The next one with a Content-Length; what follows it stays in `said`.
inline bool read_message(int fd, std::string& said, HttpMessage& out) {
  std::size_t head = 0;
  while ((head = said.find("\r\n\r\n")) == std::string::npos)
    if (!receive_more(fd, said)) return false;
  out.head = said.substr(0, head);
  for (char& c : out.head)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  constexpr std::string_view kLength = "content-length:";
  const std::size_t at = out.head.find(kLength);
  const std::size_t length =
      at == std::string::npos ? 0
                              : std::strtoul(out.head.c_str() + at + kLength.size(), nullptr, 10);
  while (said.size() < head + 4 + length)
    if (!receive_more(fd, said)) return false;
  out.body = said.substr(head + 4, length);
  said.erase(0, head + 4 + length);
  return true;
}

inline sockaddr_un unix_address(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (sizeof at.sun_path <= path.size()) give_up("too long for a socket: " + path);
  std::memcpy(static_cast<char*>(at.sun_path), path.c_str(), path.size() + 1);
  return at;
}

// Invalid: nothing listens there.
inline UniqueFd try_port(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return {};
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

inline UniqueFd connect_port(std::uint16_t port) {
  UniqueFd fd = try_port(port);
  if (!fd.valid()) give_up("nothing listens at port " + std::to_string(port));
  return fd;
}

inline UniqueFd connect_path(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un at = unix_address(path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    give_up("nobody listens at " + path);
  return fd;
}

}  // namespace proctor::bench
