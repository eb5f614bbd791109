// The first and only process of a container whose network others share: `holder SOCKET` connects to
// the worker at SOCKET and answers each port it is sent (two bytes, the low one first) with one
// byte, '1' when somebody accepts connections there and '0' when nobody does.  It ends when the
// worker does, or hangs up.
// Static, in the image of a stranger: nothing but the kernel is there.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "worker/sandbox/inner_socket.h"

namespace {
constexpr int kBadUse = 125;

bool read_whole(int fd, unsigned char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return kBadUse;
  const int worker = proctor::connect_to_socket(argv[1]);
  if (worker < 0) return kBadUse;
  unsigned char port[2];
  while (read_whole(worker, port, sizeof port)) {
    const bool yes = proctor::somebody_accepts(static_cast<std::uint16_t>(port[0] | port[1] << 8));
    if (::send(worker, yes ? "1" : "0", 1, MSG_NOSIGNAL) != 1) break;
  }
  return 0;
}
