// What the kernel counts by user, or for all: one sandbox takes all that it can have, another needs
// one.  tests/hostile runs them beside each other.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "worker/selftest/attack/attack.h"

namespace attack {
namespace {

// One more of it, kept until this process ends; `number` counts them.
using Take = bool (*)(long number);

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPipeBytes = 60'000;  // an ordinary pipe has 65,536
char bytes[kPipeBytes];

bool inotify(long) {
  const int fd = ::inotify_init1(IN_CLOEXEC);
  return 0 <= fd && 0 <= ::inotify_add_watch(fd, "/", IN_CREATE);
}

bool fanotify(long) {
  return 0 <= static_cast<int>(::syscall(SYS_fanotify_init,
                                         FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY));
}

bool terminal(long) {
  const int fd = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return false;
  int number = 0, unlocked = 0;
  char name[32];
  if (::ioctl(fd, TIOCGPTN, &number) != 0 || ::ioctl(fd, TIOCSPTLCK, &unlocked) != 0) return false;
  std::snprintf(name, sizeof name, "/dev/pts/%d", number);
  const int user = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  char said = 0;
  const bool works = 0 <= user && ::write(user, "x", 1) == 1 && ::read(fd, &said, 1) == 1;
  if (0 <= user) ::close(user);  // the other end keeps the terminal
  return works;
}

// `count` times the standard input, which then nobody has but the socket.
bool send_descriptors(int socket, std::size_t count) {
  constexpr std::size_t kMost = 253;  // the kernel's, of one message
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  char byte = 'x';
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memset(CMSG_DATA(rights), 0, count * sizeof(int));
  return ::sendmsg(socket, &message, MSG_DONTWAIT) == 1;
}

bool descriptors(long) {
  static int pair[2] = {-1, -1};
  for (int tries = 0; tries < 2; ++tries) {
    if (0 <= pair[0] && send_descriptors(pair[0], 253)) return true;
    if (0 <= pair[0] && errno != EAGAIN) return false;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  }
  return false;
}

bool one_descriptor(long) {
  int pair[2];
  return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 &&
         send_descriptors(pair[0], 1);
}

// The kernel gives pipes of two pages, and then none, to whoever has too many.
bool one_pipe(long) {
  int fds[2];
  if (::pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) return false;
  if (::write(fds[1], bytes, sizeof bytes) == static_cast<ssize_t>(sizeof bytes)) return true;
  errno = ENOBUFS;
  return false;
}

// Small ones are counted too: what others give back then is not enough for an ordinary one.
bool pipes(long number) {
  constexpr int kSmallMost = 2048;
  static int small = 0;
  return one_pipe(number) || (errno == ENOBUFS && ++small < kSmallMost);
}

// 250 at a time.
bool polls(long number) {
  constexpr int kEach = 250;
  static int watched[kEach];
  if (number == 0)
    for (int& fd : watched) fd = ::open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLPRI;
  for (const int fd : watched)
    if (::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  return true;
}

bool one_poll(long) {
  int fds[2];
  epoll_event event{};
  event.events = EPOLLIN;
  return ::pipe2(fds, O_CLOEXEC) == 0 &&
         ::epoll_ctl(::epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, fds[0], &event) == 0;
}

bool signals(long number) {
  if (number == 0) {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGRTMIN);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
  }
  return ::sigqueue(::getpid(), SIGRTMIN, sigval{}) == 0;
}

bool messages(long number) {
  char name[32];
  std::snprintf(name, sizeof name, "counts-%d-%ld", static_cast<int>(::getpid()), number);
  // By the system call: it wants no slash, and no library.
  return 0 <= ::syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, nullptr);
}

bool locked(long) {
  const int id = ::shmget(IPC_PRIVATE, kMiB / 2, IPC_CREAT | 0600);
  return 0 <= id && ::shmctl(id, SHM_LOCK, nullptr) == 0;
}

bool events(long number) {
  aio_context_t context = 0;
  return ::syscall(SYS_io_setup, number == 0 ? 1024 : 128, &context) == 0;
}

struct Resource {
  const char* name;
  Take take, one;
};
constexpr Resource kResources[] = {
    {"inotify", inotify, inotify},     {"fanotify", fanotify, fanotify},
    {"terminals", terminal, terminal}, {"descriptors", descriptors, one_descriptor},
    {"pipes", pipes, one_pipe},        {"polls", polls, one_poll},
    {"signals", signals, signals},     {"messages", messages, messages},
    {"locked", locked, locked},        {"aio", events, events}};

const Resource* resource(const Arguments& a) {
  for (const Resource& r : kResources)
    if (std::strcmp(r.name, a.text("what")) == 0) return &r;
  escaped("there is no %s to be taken", a.text("what"));
  return nullptr;
}

}  // namespace

// Takes all, then writes how much that is to the file "held" and keeps it.
void hold(const Arguments& a) {
  const Resource* const r = resource(a);
  if (r == nullptr) return;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  constexpr long kMost = 1'000'000;
  const long most = a.number("most", kMost);
  long have = 0;
  while (have < most && r->take(have)) ++have;
  const int error = errno;
  const int fd = ::open("held.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  ::dprintf(fd, "%ld %s\n", have, std::strerror(error));
  ::close(fd);
  ::rename("held.new", "held");
  for (constexpr useconds_t kPause = 5'000;; ::usleep(kPause))
    if (have < most && r->take != pipes) r->take(++have);  // what is given back
}

// An ordinary program that uses one.
void need(const Arguments& a) {
  const Resource* const r = resource(a);
  if (r != nullptr && !r->one(0)) escaped("no %s: %s", r->name, std::strerror(errno));
}

}  // namespace attack
