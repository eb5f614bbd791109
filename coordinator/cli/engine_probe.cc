#include "coordinator/cli/engine_probe.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/files.h"
#include "common/base/owned.h"

namespace proctor::cli {
namespace {

bool is_name(const std::string& image) {
  for (const char c : image)
    if (!(('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
          std::strchr(".-_/:@", c) != nullptr))
      return false;
  return !image.empty();
}

Status ask(const std::string& target, const std::string& what);

}  // namespace

std::string docker_socket() {
  const char* set = std::getenv("PROCTOR_DOCKER_SOCKET");
  return set != nullptr && *set != '\0' ? set : "/var/run/docker.sock";
}

Status engine_has_image(const std::string& image) {
  if (!is_name(image)) return Error{Errc::kInvalid, "not the name of an image"};
  return ask("/images/" + image + "/json", "image " + image);
}

Status engine_has_network(const std::string& network) {
  if (!is_name(network) || network.find('/') != std::string::npos)
    return Error{Errc::kInvalid, "not the name of a network"};
  return ask("/networks/" + network, "network " + network);
}

namespace {

Status ask(const std::string& target, const std::string& what) {
  const std::string path = docker_socket();
  const Error away{Errc::kUnavailable, "no Docker Engine answers at " + path};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (sizeof address.sun_path <= path.size()) return away;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
  if (!fd.valid() ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return away;
  const std::string request =
      "GET " + target + " HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return away;
  // The status line is all we need: "HTTP/1.1 200 OK".
  std::string head;
  std::array<char, 256> buffer{};
  constexpr std::size_t kStatusLine = 12;
  while (head.size() < kStatusLine) {
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return away;
    head.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const std::string code = head.substr(9, 3);
  if (code == "200") return ok_status();
  if (code == "404") return Error{Errc::kNotFound, "the Docker Engine has no " + what};
  return Error{Errc::kUnavailable, "the Docker Engine answered " + code};
}

}  // namespace

}  // namespace proctor::cli
