#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "worker/selftest/attack/attack.h"

namespace attack {
// Attacks on what the kernel counts by user, or for all: one sandbox takes all that it can have,
// another needs one.  tests/hostile runs them beside each other.

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
  raise_descriptors();
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

// Attacks that use up what the host has: processes, memory, disk, output, descriptors, time.

namespace {
char block[kMiB];

[[noreturn]] void burn() {
  for (volatile unsigned long i = 0;;) i = i + 1;
}

// A child that has as many as it may; returns when it has.
void hold_descriptors() {
  int ready[2];
  if (::pipe(ready) != 0) return;
  if (::fork() == 0) {
    raise_descriptors();
    while (0 <= ::dup(ready[0])) {
    }
    ::close(ready[1]);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char word = 0;
  [[maybe_unused]] const ssize_t n = ::read(ready[0], &word, 1);  // until it has closed it
  ::close(ready[0]);
}
}  // namespace

// Children that only sit there count what can be had; then everybody forks until the end.
void fork_bomb(const Arguments& a) {
  const long most = a.number("most", 100);
  long made = 0;
  for (; made < 4 * most; ++made) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid == 0)
      for (;;) ::pause();
  }
  if (most < made) escaped("%ld processes, where %ld are allowed", made, most);
  note("made %ld", made);
  for (;;) {
    const pid_t pid = ::fork();
    if (pid < 0) ::waitpid(-1, nullptr, WNOHANG);
  }
}

// One process, or many with a share each: a limit for each process alone would not see those.
void memory_bomb(const Arguments& a) {
  const long children = a.number("children", 0);
  const std::size_t share = static_cast<std::size_t>(a.number("mib", 100'000)) * kMiB;
  for (long i = 0; i < children; ++i) {
    if (::fork() != 0) continue;
    for (std::size_t have = 0; have < share; have += kMiB) {
      void* page =
          ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (page == MAP_FAILED) break;
      std::memset(page, 1, kMiB);
    }
    for (;;) ::pause();
  }
  if (0 < children) {
    while (0 < ::wait(nullptr)) {
    }
    return;
  }
  for (;;) {
    void* page = ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    std::memset(page, 1, kMiB);
  }
}

// Without a line's end anywhere, on both streams.
void output_flood(const Arguments& a) {
  std::memset(block, 'x', sizeof block);
  const long most = a.number("mib", 64);
  for (long i = 0; i < most; ++i) {
    for (const int fd : {1, 2})
      if (::write(fd, block, sizeof block) < 0) return;
  }
}

void spin(const Arguments& a) {
  for (long i = 1; i < a.number("processes", 1); ++i)
    if (::fork() == 0) break;
  burn();
}

// With holders: while that many processes have all the descriptors that they may, of one file, and
// whoever looks for files without a name has to look at each.
void fill_files(const Arguments& a) {
  const long each = a.number("mib", 4), holders = a.number("holders", 0),
             most = a.number("most", 1L << 40);
  std::memset(block, 'x', sizeof block);
  for (long i = 0; i < holders; ++i) hold_descriptors();
  for (long file = 0;; ++file) {
    if (most < file * each) {
      escaped("%ld MiB on the disk", file * each);
      ::pause();
    }
    char name[64];
    std::snprintf(name, sizeof name, "full-%ld", file);
    const int fd = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) ::pause();
    for (long i = 0; i < each; ++i)
      if (::write(fd, block, sizeof block) < 0) ::pause();
    ::close(fd);
  }
}

void fill_empty(const Arguments&) {
  for (long file = 0;; ++file) {
    char name[64];
    constexpr useconds_t kPause = 4'000;
    if (file % 100 == 0) ::usleep(kPause);  // what is made between two looks must go again
    if (file % 1000 == 0) {
      std::snprintf(name, sizeof name, "many-%ld", file / 1000);
      if (::mkdir(name, 0755) != 0 && errno != EEXIST) ::pause();
    }
    std::snprintf(name, sizeof name, "many-%ld/%ld", file / 1000, file % 1000);
    const int fd = ::open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) ::pause();
    ::close(fd);
  }
}

// Folders that live in memory, shared memory of both kinds, and files without a name.
void fill_memory_folders(const Arguments& a) {
  const long most = a.number("mib", 64);
  long have = 0;
  std::memset(block, 'x', sizeof block);
  ::signal(SIGXFSZ, SIG_IGN);
  const auto fill = [&](int fd) {
    while (0 <= fd && have <= 4 * most && ::write(fd, block, sizeof block) == sizeof block) ++have;
  };
  for (const char* folder :
       {"/tmp", "/dev/shm", "/run", "/home", "/home/proctor", "/dev", "/var/tmp"}) {
    // One file may be limited by itself.
    for (long before = -1, file = 0; before != have; ++file) {
      char name[64];
      std::snprintf(name, sizeof name, "%s/full-%ld", folder, file);
      before = have;
      fill(::open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
  }
  fill(::memfd_create("full", MFD_CLOEXEC));
  const int segment =
      ::shmget(IPC_PRIVATE, static_cast<std::size_t>(4 * most) * kMiB, IPC_CREAT | 0600);
  if (void* at = segment < 0 ? nullptr : ::shmat(segment, nullptr, 0);
      at != nullptr && at != reinterpret_cast<void*>(-1)) {
    for (long i = 0; i < 4 * most; ++i, ++have)
      std::memset(static_cast<char*>(at) + static_cast<std::size_t>(i) * kMiB, 1, kMiB);
  }
  if (most < have) escaped("%ld MiB of memory in files, where %ld are allowed", have, most);
}

// Twice forked, in sessions of their own, deaf to every signal, stopped, and waiting in vfork.
void survivors(const Arguments& a) {
  const auto detach = [](auto what) {
    if (::fork() != 0) return;
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    for (int s = 1; s < SIGRTMAX; ++s) ::signal(s, SIG_IGN);
    for (const int fd : {0, 1, 2}) ::close(fd);
    what();
    ::_exit(0);
  };
  detach([] {
    for (;;) ::pause();
  });
  detach([] { burn(); });
  detach([] {
    for (;;) ::raise(SIGSTOP);
  });
  detach([] {
    // The parent of a vfork waits, in no mood for signals, until its child ends.
    if (::vfork() == 0)
      for (;;) ::pause();
  });
  detach([] {
    for (;;) {  // a new process id at every look
      if (::fork() != 0) ::_exit(0);
      ::usleep(1000);
    }
  });
  note("detached");
  if (a.number("stay", 0) != 0)
    for (;;) ::pause();
}

void kill_all(const Arguments&) {
  for (int pid = 1; pid < 70'000; ++pid)
    if (pid != ::getpid() && pid != ::getppid()) ::kill(pid, SIGKILL);
  ::kill(1, SIGTERM);
  ::kill(0, SIGKILL);
  ::kill(-1, SIGKILL);
}

void one_large_file(const Arguments& a) {
  ::signal(SIGXFSZ, SIG_IGN);
  const off_t most = static_cast<off_t>(a.number("mib", 8)) * static_cast<off_t>(kMiB);
  const int fd = ::open("large", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return escaped("no file can be made at all: %s", std::strerror(errno));
  if (::pwrite(fd, "x", 1, 64 * most) == 1) escaped("a file larger than the limit, with a hole");
  if (::ftruncate(fd, 1024 * most) == 0) escaped("a file made larger than the limit");
  if (::fallocate(fd, 0, 0, 16 * most) == 0) escaped("a file allocated beyond the limit");
  if (::pwrite(fd, "x", 1, 0) != 1) escaped("nothing can be written at all");
  ::close(fd);
}

void deep_folders(const Arguments& a) {
  const long most = a.number("depth", 5000);
  long depth = 0;
  while (depth < most && ::mkdir("d", 0755) == 0 && ::chdir("d") == 0) ++depth;
  note("depth %ld", depth);
}

void exhaust_descriptors(const Arguments&) {
  raise_descriptors();
  constexpr long kTooMany = 2'000'000;
  long have = 0;
  int pair[2];
  while (have < kTooMany && ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) have += 2;
  note("descriptors %ld", have);
  if (kTooMany <= have) escaped("no limit on open files");
}
}  // namespace attack
