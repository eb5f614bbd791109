// The inner end of a sandbox's ways out: `forward PORT=SOCKET... -- PROGRAM ARGUMENT...` listens on
// 127.0.0.1:PORT of the sandbox's own empty network, passes what comes there to the Unix socket
// SOCKET and back, and becomes PROGRAM.  Nothing is decided here: whoever kills or replaces it has
// cut himself off, or speaks to the same proxy without it.
//
// `forward --stdio SOCKET` passes its standard input to the socket and what comes from there to its
// standard output, until the socket's other end is over: for clients that speak to a program.
//
// The listening sockets exist before PROGRAM starts, so that it need not wait for them; the process
// that serves them is nobody's child but init's, so that PROGRAM never meets it in a wait().
// Static, in the image of a stranger: nothing but the kernel is there.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
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
constexpr int kWays = 4, kPairsOfWay = 64, kPairs = 2 * kPairsOfWay;
constexpr int kBuffer = 32 << 10;
constexpr int kLingerMs = 5'000;

// One direction: what was read and is not yet written.
struct Half {
  int begin = 0, end = 0;
  bool open = true;       // more may come
  char* bytes = nullptr;  // kBuffer of them
};

struct Way {
  int listener = -1;
  const char* socket = nullptr;
  int pairs = 0;
};

struct Pair {
  int inside = -1, outside = -1;
  Way* way = nullptr;
  bool lingers = false;  // `outside` is over; the rest of `inside` is read and thrown away
  Half out, in;
};

Pair pairs[kPairs];
char buffers[kPairs][2][kBuffer];  // apart, so that nothing of them lies in the program's file
Way ways[kWays];

int listen_on(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, kPairsOfWay) != 0)
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
  --p.way->pairs;
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

// One that waits at `way`, if there is.
void accept_one(Way& way, Pair& free) {
  const int inside = ::accept4(way.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (inside < 0) return;
  free.inside = inside;
  free.outside = connect_to(way.socket);
  free.way = &way;
  free.lingers = false;
  ++way.pairs;
  begin(free.out);
  begin(free.in);
  free.out.bytes = buffers[&free - pairs][0];
  free.in.bytes = buffers[&free - pairs][1];
  if (free.outside < 0) close_pair(free);
}

Pair* free_pair() {
  for (Pair& p : pairs)
    if (p.inside < 0) return &p;
  return nullptr;
}

[[noreturn]] void serve(int count) {
  pollfd fds[kWays + 2 * kPairs];
  for (;;) {
    bool lingering = false;
    for (int i = 0; i < kPairs; ++i) {
      Pair& p = pairs[i];
      lingering = lingering || (0 <= p.inside && p.lingers);
      const short in = p.inside < 0 ? short{0} : p.lingers ? short{POLLIN} : wish(p.out, p.in);
      const short out = p.outside < 0 ? short{0} : wish(p.in, p.out);
      fds[kWays + 2 * i] = {in == 0 ? -1 : p.inside, in, 0};
      fds[kWays + 1 + 2 * i] = {out == 0 ? -1 : p.outside, out, 0};
    }
    const bool room = free_pair() != nullptr;
    for (int i = 0; i < kWays; ++i) {
      const bool open = i < count && room && ways[i].pairs < kPairsOfWay;
      fds[i] = {open ? ways[i].listener : -1, POLLIN, 0};
    }
    const int ready = ::poll(fds, kWays + 2 * kPairs, lingering ? kLingerMs : -1);
    for (int i = 0; i < kPairs; ++i) {
      Pair& p = pairs[i];
      if (p.inside < 0) continue;
      const short in = fds[kWays + 2 * i].revents, out = fds[kWays + 1 + 2 * i].revents;
      if (ready == 0 && p.lingers)
        close_pair(p);
      else if (in != 0 || out != 0)
        move(p, in, out);
    }
    for (int i = 0; 0 < ready && i < count; ++i)
      if (Pair* const free = fds[i].revents == 0 ? nullptr : free_pair())
        accept_one(ways[i], *free);
  }
}

bool is_way(int fd, int count) {
  for (int i = 0; i < count; ++i)
    if (ways[i].listener == fd) return true;
  return false;
}

void forget_descriptors(int count) {
  for (int fd = 0; fd < 1024; ++fd)
    if (!is_way(fd, count)) ::close(fd);
}

// The ways that are named; where the program's words begin, 0: bad use.
int open_ways(int argc, char** argv, int& count) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) return 0 < count && i + 1 < argc ? i + 1 : 0;
    const char* const equals = std::strchr(argv[i], '=');
    if (equals == nullptr || count == kWays) return 0;
    ways[count].listener = listen_on(std::atoi(argv[i]));
    ways[count].socket = equals + 1;
    if (ways[count++].listener < 0) return 0;
  }
  return 0;
}

// Until one of them is over or broken.
void copy(int from, int to) {
  char* const bytes = buffers[0][0];
  for (;;) {
    const ssize_t n = ::read(from, bytes, kBuffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    for (ssize_t done = 0; done < n;) {
      const ssize_t written = ::write(to, bytes + done, static_cast<std::size_t>(n - done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      done += written;
    }
  }
}

// One process for each direction: neither waits for a reader of the other's.
int pass_stdio(const char* path) {
  ::signal(SIGPIPE, SIG_IGN);
  const int fd = proctor::connect_to_socket(path);
  if (fd < 0) return kCannotRun;
  const pid_t parent = ::getpid(), in = ::fork();
  if (in < 0) return kBadUse;
  if (in == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) copy(STDIN_FILENO, fd);
    ::shutdown(fd, SHUT_WR);
    ::_exit(0);
  }
  copy(fd, STDOUT_FILENO);
  ::kill(in, SIGKILL);
  ::waitpid(in, nullptr, 0);
  return 0;
}
}  // namespace

int main(int argc, char** argv, char** envp) {
  if (argc == 3 && std::strcmp(argv[1], "--stdio") == 0) return pass_stdio(argv[2]);
  int count = 0;
  const int program = open_ways(argc, argv, count);
  if (program == 0) return kBadUse;
  const pid_t between = ::fork();
  if (between < 0) return kBadUse;
  if (between == 0) {
    if (const pid_t server = ::fork(); server != 0) ::_exit(server < 0 ? kBadUse : 0);
    ::setsid();  // out of reach of the program's signals to its group
    forget_descriptors(count);
    serve(count);
  }
  int status = 0;
  if (::waitpid(between, &status, 0) != between || status != 0) return kBadUse;
  ::execve(argv[program], argv + program, envp);
  return kCannotRun;
}
