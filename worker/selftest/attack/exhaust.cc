// Attacks that use up what the host has: processes, memory, disk, output, descriptors, time.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "worker/selftest/attack/attack.h"

namespace attack {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
char block[kMiB];

[[noreturn]] void burn() {
  for (volatile unsigned long i = 0;;) i = i + 1;
}

// A child that has as many as it may; returns when it has.
void hold_descriptors() {
  int ready[2];
  if (::pipe(ready) != 0) return;
  if (::fork() == 0) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
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
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr long kTooMany = 2'000'000;
  long have = 0;
  int pair[2];
  while (have < kTooMany && ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) have += 2;
  note("descriptors %ld", have);
  if (kTooMany <= have) escaped("no limit on open files");
}

}  // namespace attack
