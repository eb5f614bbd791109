#pragma once
// A connection to a Unix socket that a mount shows, for the small programs that run inside
// sandboxes: without a library of ours, in the image of a stranger.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

}  // namespace proctor
