#include "worker/selftest/bait.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace proctor {
namespace {

Result<UniqueFd> listening(const sockaddr* address, socklen_t size, int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("bait: socket", errno);
  if (::bind(fd.get(), address, size) != 0 || ::listen(fd.get(), 16) != 0)
    return errno_error("bait: listen", errno);
  return fd;
}

Result<UniqueFd> listening_unix(std::string_view path, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t skip = abstract ? 1 : 0;
  if (sizeof address.sun_path <= path.size() + skip)
    return Error{Errc::kInvalid, "bait: " + std::string(path) + " is too long for a socket"};
  std::copy(path.begin(), path.end(), static_cast<char*>(address.sun_path) + skip);
  const std::size_t size =
      abstract ? offsetof(sockaddr_un, sun_path) + skip + path.size() : sizeof address;
  return listening(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size),
                   AF_UNIX);
}

}  // namespace

Result<Bait> Bait::lay(const fs::path& dir) {
  Bait bait;
  bait.secret_ = dir / "secret";
  bait.socket_ = dir / "engine.sock";
  bait.abstract_ = "proctor-bait-" + std::to_string(::getpid()) + "-" + dir.filename().string();
  std::error_code ec;
  bait.program_ = fs::read_symlink("/proc/self/exe", ec).filename().string();
  PROCTOR_CHECK_OK(
      write_file(bait.secret_, "a secret of the host\n", Durability::kLazy, kOpenFile));
  PROCTOR_TRY(bait.file_socket_, listening_unix(bait.socket_.string(), false));
  PROCTOR_TRY(bait.abstract_socket_, listening_unix(bait.abstract_, true));
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PROCTOR_TRY(bait.tcp_,
              listening(reinterpret_cast<const sockaddr*>(&local), sizeof local, AF_INET));
  socklen_t size = sizeof local;
  if (::getsockname(bait.tcp_.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return errno_error("bait: getsockname", errno);
  bait.port_ = ntohs(local.sin_port);
  return bait;
}

std::string Bait::words() const {
  return "secret=" + secret_.string() + " engine=" + socket_.string() +
         " port=" + std::to_string(port_) + " abstract=" + abstract_ + " mark=" + program_;
}

}  // namespace proctor
