// The inner end of a sandbox's only way out: `forward PORT SOCKET -- PROGRAM ARGUMENT...` listens
// on 127.0.0.1:PORT of the sandbox's own empty network, passes what comes there to the Unix socket
// SOCKET and back, and becomes PROGRAM.  Nothing is decided here: whoever kills or replaces it has
// cut himself off, or speaks to the same proxy without it.
//
// The listening socket exists before PROGRAM starts, so that it need not wait for it; the process
// that serves it is nobody's child but init's, so that PROGRAM never meets it in a wait().
// Static, in the image of a stranger: nothing but the kernel is there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "worker/sandbox/inner_socket.h"

namespace {

constexpr int kBadUse = 125, kCannotRun = 127;
constexpr int kPairs = 64;
constexpr int kBuffer = 32 << 10;
constexpr int kLingerMs = 5'000;

// One direction: what was read and is not yet written.
struct Half {
  int begin = 0, end = 0;
  bool open = true;  // more may come
  char bytes[kBuffer];
};

struct Pair {
  int inside = -1, outside = -1;
  bool lingers = false;  // `outside` is over; the rest of `inside` is read and thrown away
  Half out, in;
};

Pair pairs[kPairs];

int listen_on(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, kPairs) != 0)
    return -1;
  return fd;
}

int connect_to(const char* path) {
  const int fd = proctor::connect_to_socket(path);
  if (0 <= fd) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

void close_pair(Pair& p) {
  if (0 <= p.inside) ::close(p.inside);
  if (0 <= p.outside) ::close(p.outside);
  p.inside = p.outside = -1;
}

// False: the reading side is broken.
bool fill(Half& h, int from) {
  if (!h.open || h.begin != h.end) return true;
  const ssize_t n = ::read(from, h.bytes, kBuffer);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  h.begin = 0;
  h.end = static_cast<int>(n);
  h.open = 0 < n;
  return true;
}

// False: the writing side is broken.
bool drain(Half& h, int to) {
  if (h.begin == h.end) return true;
  const ssize_t n =
      ::send(to, h.bytes + h.begin, static_cast<std::size_t>(h.end - h.begin), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  h.begin += static_cast<int>(n);
  return true;
}

void begin(Half& h) {
  h.begin = h.end = 0;
  h.open = true;
}

bool over(const Half& h) {
  return !h.open && h.begin == h.end;
}

short wish(const Half& reads, const Half& writes) {
  short events = 0;
  if (reads.open && reads.begin == reads.end) events |= POLLIN;
  if (writes.begin != writes.end) events |= POLLOUT;
  return events;
}

void move(Pair& p, short inside, short outside) {
  if (p.lingers) {
    char nothing[4096];
    ssize_t n = 0;
    while (0 < (n = ::read(p.inside, nothing, sizeof nothing))) {
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) close_pair(p);
    return;
  }
  const bool was_open = p.out.open;
  bool fine = true;
  if ((inside & ~POLLOUT) != 0) fine = fill(p.out, p.inside);
  if (was_open && over(p.out)) ::shutdown(p.outside, SHUT_WR);
  // The proxy closes with bytes of ours unread: what it has said itself is read all the same.
  if (!drain(p.out, p.outside)) p.out.begin = p.out.end;
  if ((outside & ~POLLOUT) != 0 && !fill(p.in, p.outside)) p.in.open = false;
  if (!fine || !drain(p.in, p.inside)) return close_pair(p);
  if (!over(p.in)) return;
  // Closed with bytes unread, the client would be reset and might lose the answer.
  ::shutdown(p.inside, SHUT_WR);
  ::close(p.outside);
  p.outside = -1;
  if (over(p.out)) return close_pair(p);
  p.lingers = true;
}

[[noreturn]] void serve(int listener, const char* path) {
  pollfd fds[1 + 2 * kPairs];
  for (;;) {
    Pair* free = nullptr;
    bool lingering = false;
    for (int i = 0; i < kPairs; ++i) {
      Pair& p = pairs[i];
      if (p.inside < 0) free = &p;
      lingering = lingering || p.lingers;
      const short in = p.inside < 0 ? short{0} : p.lingers ? short{POLLIN} : wish(p.out, p.in);
      const short out = p.outside < 0 ? short{0} : wish(p.in, p.out);
      fds[1 + 2 * i] = {in == 0 ? -1 : p.inside, in, 0};
      fds[2 + 2 * i] = {out == 0 ? -1 : p.outside, out, 0};
    }
    fds[0] = {free == nullptr ? -1 : listener, POLLIN, 0};
    const int ready = ::poll(fds, 1 + 2 * kPairs, lingering ? kLingerMs : -1);
    for (int i = 0; i < kPairs; ++i) {
      Pair& p = pairs[i];
      if (p.inside < 0) continue;
      if (ready == 0 && p.lingers)
        close_pair(p);
      else if (fds[1 + 2 * i].revents != 0 || fds[2 + 2 * i].revents != 0)
        move(p, fds[1 + 2 * i].revents, fds[2 + 2 * i].revents);
    }
    if (ready <= 0 || fds[0].revents == 0 || free == nullptr) continue;
    const int inside = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (inside < 0) continue;
    const int outside = connect_to(path);
    free->inside = inside;
    free->outside = outside;
    free->lingers = false;
    begin(free->out);
    begin(free->in);
    if (outside < 0) close_pair(*free);
  }
}

void forget_descriptors(int but) {
  for (int fd = 0; fd < 1024; ++fd)
    if (fd != but) ::close(fd);
}

}  // namespace

int main(int argc, char** argv, char** envp) {
  if (argc < 5 || std::strcmp(argv[3], "--") != 0) return kBadUse;
  const int listener = listen_on(std::atoi(argv[1]));
  if (listener < 0) return kBadUse;
  const pid_t between = ::fork();
  if (between < 0) return kBadUse;
  if (between == 0) {
    if (const pid_t server = ::fork(); server != 0) ::_exit(server < 0 ? kBadUse : 0);
    ::setsid();  // out of reach of the program's signals to its group
    forget_descriptors(listener);
    serve(listener, argv[2]);
  }
  int status = 0;
  if (::waitpid(between, &status, 0) != between || status != 0) return kBadUse;
  ::execve(argv[4], argv + 4, envp);
  return kCannotRun;
}
