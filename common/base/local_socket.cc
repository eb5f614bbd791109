#include "common/base/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace proctor {

namespace {

// Through a descriptor the path is short whatever it is.
sockaddr_un address_in(const UniqueFd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/socket";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<UniqueFd> listen_in(const fs::path& dir, int backlog, const std::string& what) {
  const UniqueFd folder(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(what + ": open " + dir.string(), errno);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error(what, errno);
  const sockaddr_un address = address_in(folder);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how bind is called
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(what + ": bind", errno);
  // The user inside a sandbox is not ours; only the sandbox leads here.
  if (::fchmodat(folder.get(), "socket", 0777, 0) != 0) return errno_error(what + ": chmod", errno);
  if (::listen(fd.get(), backlog) != 0) return errno_error(what + ": listen", errno);
  return fd;
}

Result<UniqueFd> connect_in(const fs::path& dir, const std::string& what) {
  const UniqueFd folder(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(what + ": open " + dir.string(), errno);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error(what, errno);
  const sockaddr_un address = address_in(folder);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how connect is called
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error{Errc::kUnavailable, errno_error(what + ": connect", errno).detail};
  return fd;
}

}  // namespace proctor
