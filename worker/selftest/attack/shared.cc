// What sandboxes of one host are shown can be one inode for all of them: whoever may read it may
// lock it and watch it, and his neighbour sees the one and causes the other.  One sandbox marks all
// that it can open, another looks for the marks.  tests/hostile runs them beside each other.
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "worker/selftest/attack/attack.h"

namespace attack {
namespace {

constexpr off_t kByte = 4'711;  // any that others agree on
constexpr int kSignal = 42;     // likewise
constexpr const char* kInput = "/proc/self/fd/0";

// Whatever a kind of sandbox does not have is not there to be opened.
constexpr const char* kPlaces[] = {"/",
                                   "/usr",
                                   "/usr/bin",
                                   "/usr/bin/env",
                                   "/usr/lib",
                                   "/usr/share",
                                   "/bin",
                                   "/bin/sh",
                                   "/lib",
                                   "/lib64",
                                   "/etc",
                                   "/etc/passwd",
                                   "/etc/hosts",
                                   "/etc/hostname",
                                   "/etc/resolv.conf",
                                   "/etc/ld.so.cache",
                                   "/etc/ssl/openssl.cnf",
                                   "/etc/ssl/certs",
                                   "/etc/ssl/certs/ca-certificates.crt",
                                   "/etc/alternatives",
                                   "/init",
                                   "/sbin/docker-init",
                                   "/dev",
                                   "/dev/null",
                                   "/dev/zero",
                                   "/dev/full",
                                   "/dev/random",
                                   "/dev/urandom",
                                   "/dev/pts",
                                   "/dev/shm",
                                   "/dev/mqueue",
                                   "/proc",
                                   "/proc/version",
                                   "/proc/locks",
                                   "/proc/sys/kernel/ostype",
                                   "/sys",
                                   "/sys/kernel",
                                   "/tmp",
                                   "/run",
                                   "/home",
                                   kInput};

// `use(path)` for each of them, and for what the caller names as "at" and "below".
template <class Use>
void for_each_place(const Arguments& a, Use use) {
  for (const char* path : kPlaces) use(path);
  for (const char* key : {"at", "below"})
    if (const char* path = a.text(key); *path != '\0') use(path);
}

int open_to_look(const char* path) {
  return ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

struct flock one_byte(short type) {
  struct flock out {};
  out.l_type = type;
  out.l_whence = SEEK_SET;
  out.l_start = kByte;
  out.l_len = 1;
  return out;
}

void look_for_lock(const char* path, int fd) {
  for (const auto& [call, name] : {std::pair{F_OFD_GETLK, "F_OFD_GETLK"}, {F_GETLK, "F_GETLK"}}) {
    struct flock asked = one_byte(F_WRLCK);
    if (::fcntl(fd, call, &asked) == 0 && asked.l_type != F_UNLCK)
      escaped("%s tells of another's lock on %s", name, path);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    escaped("another's flock on %s is felt", path);
}

}  // namespace

// Locks and watches everything, writes the file "held", and says what it saw when there is a file
// "over".
void mark_shared(const Arguments& a) {
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  for_each_place(a, [](const char* path) {
    const int fd = open_to_look(path);  // kept until the end
    if (fd < 0) return;
    struct flock lock = one_byte(F_RDLCK);
    (void)::fcntl(fd, F_OFD_SETLK, &lock);
    (void)::flock(fd, LOCK_SH | LOCK_NB);
  });
  (void)::fcntl(STDIN_FILENO, F_SETSIG, kSignal);
  int watched = 0;
  for_each_place(a, [&](const char* path) {
    watched += 0 <= ::inotify_add_watch(watch, path, IN_OPEN | IN_ACCESS | IN_CLOSE) ? 1 : 0;
  });
  // What it does itself from here on it sees as well: nothing below the places but this.
  const int fd = ::open("/workspace/held.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  ::dprintf(fd, "%d watched\n", watched);
  ::close(fd);
  ::rename("/workspace/held.new", "/workspace/held");
  struct stat st {};
  for (constexpr useconds_t kPause = 5'000; ::stat("/workspace/over", &st) != 0; ::usleep(kPause)) {
  }
  alignas(inotify_event) char events[4096];
  const ssize_t n = ::read(watch, events, sizeof events);
  if (n <= 0) return;
  const auto* const first = reinterpret_cast<const inotify_event*>(&events[0]);
  escaped("what another opens is seen: watch %d, %s", first->wd, 0 < first->len ? first->name : "");
}

// Looks for the locks, and opens all.
void see_shared(const Arguments& a) {
  if (const int signal = ::fcntl(STDIN_FILENO, F_GETSIG); 0 < signal)
    escaped("the standard input is another's: it has his signal %d", signal);
  for_each_place(a, [](const char* path) {
    const int fd = open_to_look(path);
    if (fd < 0) return;
    look_for_lock(path, fd);
    char byte = 0;
    (void)!::read(fd, &byte, 1);
    ::close(fd);
  });
}

}  // namespace attack
