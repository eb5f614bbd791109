#pragma once
// Lacks that only a program inside a sandbox sees: a full disk, and what the kernel counts for
// others.  Without a library: init includes this, and is linked with C's headers alone.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace proctor {
// When a host's disk counts as full, and the word for it of a sandbox's first process: of a command
// that outlives its worker nobody else can tell.
// Source: statvfs(3).

inline constexpr uint64_t kFullBytes = uint64_t{1} << 20;
inline constexpr uint64_t kFullFiles = 16;

// File systems that make inodes as they need them say 0 of 0.
inline bool is_full(const struct statvfs& st) {
  return uint64_t{st.f_bavail} * st.f_frsize < kFullBytes ||
         (st.f_files != 0 && st.f_favail < kFullFiles);
}

// Init's exit code then, whatever the program's was.  No program can say it: its own is told as the
// one below.  Beyond all signals (128 to 192) and all that a campaign may give a meaning.
inline constexpr int kInitSawFullDisk = 253;

// Things that a sandbox cannot have of what the kernel counts for all that are one user to it, or
// for all of the host: asked of a sandbox's first program as `init --lacks`, by whoever wonders
// whether a command failed for want of it.
// Source: unix(7) on ETOOMANYREFS, pipe(7) on pipe-user-pages-soft, pts(4), inotify(7),
// mq_overview(7), sigqueue(3), epoll(7), io_setup(2).

// Open files are counted for the whole machine (fs.file-max): whoever has a capability for it is
// refused none.
inline bool lacks_files() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC) < 0 && errno == ENFILE;
}

inline bool lacks_inotify() {
  return ::inotify_init1(IN_CLOEXEC) < 0 && errno == EMFILE;
}

inline bool lacks_terminals() {
  return ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) < 0 &&
         (errno == ENOSPC || errno == EIO || errno == ENOMEM);
}

// Told by a limit that is lower than a sandbox's own: many programs set themselves this one, and
// the kernel refuses whoever finds more of his user's descriptors on their way than his limit.
inline bool lacks_descriptors() {
  constexpr rlim_t kOrdinary = 1024;
  rlimit files;
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  if (kOrdinary < files.rlim_cur) files.rlim_cur = kOrdinary;
  ::setrlimit(RLIMIT_NOFILE, &files);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char byte = 'x';
  iovec data = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  ::memcpy(CMSG_DATA(rights), pair, sizeof(int));
  return ::sendmsg(pair[0], &message, MSG_DONTWAIT) < 0 && errno == ETOOMANYREFS;
}

// Whoever has too many pages in pipes gets pipes of two, and then none.
inline bool lacks_pipes() {
  constexpr int kPagesLeft = 2;
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno == ENFILE;
  return ::fcntl(fds[0], F_GETPIPE_SZ) <= kPagesLeft * ::getpagesize();
}

inline bool lacks_signals() {
  const int number = SIGRTMIN;
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  sigval value;
  value.sival_int = 0;
  return ::sigqueue(::getpid(), number, value) != 0 && errno == EAGAIN;
}

// By the system call, which wants the name without a slash.
inline bool lacks_messages() {
  constexpr const char* kName = "proctor-lacks";
  const long queue = ::syscall(SYS_mq_open, kName, O_RDWR | O_CREAT | O_CLOEXEC, 0600, nullptr);
  if (queue < 0) return errno == EMFILE || errno == ENOSPC;
  ::syscall(SYS_mq_unlink, kName);
  return false;
}

inline bool lacks_polls() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  int fds[2];
  if (fd < 0 || ::pipe2(fds, O_CLOEXEC) != 0) return false;
  epoll_event event = {};
  event.events = EPOLLIN;
  return ::epoll_ctl(fd, EPOLL_CTL_ADD, fds[0], &event) != 0 && errno == ENOSPC;
}

inline bool lacks_events() {
  unsigned long context = 0;
  return ::syscall(SYS_io_setup, 1, &context) != 0 && errno == EAGAIN;
}

// A line for each, to `fd`; 0, whatever they are.
inline int say_what_lacks(int fd) {
  struct Question {
    const char* name;
    bool (*lacks)();
  };
  const Question questions[] = {{"open files\n", lacks_files},
                                {"inotify instances\n", lacks_inotify},
                                {"terminals\n", lacks_terminals},
                                {"descriptors on their way through sockets\n", lacks_descriptors},
                                {"pages in pipes\n", lacks_pipes},
                                {"pending signals\n", lacks_signals},
                                {"bytes in message queues\n", lacks_messages},
                                {"watches of epoll\n", lacks_polls},
                                {"asynchronous input and output\n", lacks_events}};
  for (const Question& q : questions)
    if (q.lacks()) (void)!::write(fd, q.name, ::strlen(q.name));
  return 0;
}
}  // namespace proctor
