#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/sandbox/init/attempts.h"
#include "worker/sandbox/init/lacks.h"

// Headers of C alone: it is linked with musl where that is (cmake/ProctorTargets.cmake), whose
// start does not ask the processor for its features.  Under a hypervisor each such question is a
// trap, and glibc asks for 0.6 ms of them.

namespace proctor {
// Things that a sandbox's first process gets on a descriptor: the filter of system calls for itself
// and all that come after it, limits likewise, and the environment of the program that it runs.
// Every user of the host sees the arguments of a runtime in the process list, and its configuration
// lies in a file.
// Source: PR_SET_SECCOMP in prctl(2); seccomp(2).

// Each begins with its length in bytes, in the processor's own order.  Longer than this no kernel
// lets an environment be, and no filter is.
inline constexpr uint64_t kGivenMost = uint64_t{16} << 20;

inline bool read_whole(int fd, char* bytes, uint64_t size) {
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

inline void* new_memory(uint64_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Null: it is not what was promised.  Behind its end there is a NUL; memory is the process's own.
inline char* read_given(int fd, uint64_t& size) {
  if (!read_whole(fd, reinterpret_cast<char*>(&size), sizeof size) || kGivenMost < size)
    return nullptr;
  char* bytes = static_cast<char*>(new_memory(size + 1));
  return bytes == nullptr || !read_whole(fd, bytes, size) ? nullptr : bytes;
}

// The instructions of a filter, in the words that the kernel has for it (sock_fprog).
struct Filter {
  unsigned short count = 0;
  char* program = nullptr;
};

// False: what is given is none.  An empty one is: it has no instructions.
inline bool read_filter(int fd, Filter& filter) {
  constexpr uint64_t kInstruction = 8;  // bytes of a struct sock_filter
  uint64_t size = 0;
  filter.program = read_given(fd, size);
  if (filter.program == nullptr || size % kInstruction != 0 || (size / kInstruction) >> 16 != 0)
    return false;
  filter.count = static_cast<unsigned short>(size / kInstruction);
  return true;
}

// Negative, and errno: the kernel does not take it.
inline long obey_filter(const Filter& filter, unsigned flags = 0) {
  constexpr int kByFilter = 1;  // SECCOMP_SET_MODE_FILTER
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return ::syscall(SYS_seccomp, kByFilter, flags, &filter);
}

// For a process whose calls are watched: the descriptor by which its filter asks, or negative.  A
// signal does not interrupt a call that is being looked at, where the kernel can keep it from that.
inline int obey_watched(const Filter& filter) {
  constexpr unsigned kNewListener = 1 << 3, kWaitKillable = 1 << 5;
  const long listener = obey_filter(filter, kNewListener | kWaitKillable);
  return static_cast<int>(0 <= listener || errno != EINVAL ? listener
                                                           : obey_filter(filter, kNewListener));
}

// Of this process and all that it starts: a resource and the most of it, one after another.
inline bool obey_limits(int fd) {
  uint64_t size = 0;
  const char* bytes = read_given(fd, size);
  if (bytes == nullptr || size % (2 * sizeof(uint64_t)) != 0) return false;
  for (uint64_t at = 0; at < size; at += 2 * sizeof(uint64_t)) {
    uint64_t resource = 0, most = 0;
    memcpy(&resource, bytes + at, sizeof resource);
    memcpy(&most, bytes + at + sizeof resource, sizeof most);
    const uint64_t limit[] = {most, most};  // the kernel's, not libc's
    if (::syscall(SYS_prlimit64, 0, resource, limit, nullptr) != 0) return false;
  }
  return true;
}

// `NAME=VALUE` with a NUL behind each.  Nothing of it stays behind the descriptor, which the
// runtime may hold open as long as it lives.
inline char** read_environment(int fd) {
  uint64_t size = 0;
  char* texts = read_given(fd, size);
  if (texts == nullptr) return nullptr;
  (void)!::ftruncate(fd, 0);  // fails on a socket, which keeps nothing
  if (size != 0 && texts[size - 1] != '\0') return nullptr;
  uint64_t count = 0;
  for (uint64_t i = 0; i < size; ++i) count += texts[i] == '\0';
  char** all = static_cast<char**>(new_memory((count + 1) * sizeof(char*)));
  if (all == nullptr) return nullptr;
  uint64_t next = 0;
  for (uint64_t i = 0; i < size; ++i)
    if (i == 0 || texts[i - 1] == '\0') all[next++] = texts + i;
  return all;  // the last is null: the memory is new
}

// Landlock, where the kernel has it: a second line that needs no mount, no namespace and no user.
// Whatever else should fail, the command and all it starts write, make and remove nothing but
// below the places named, send no signal to a process outside (the sandbox's first one is), and
// reach no abstract socket that somebody outside has made: with a network of the host's those are
// its services' own.  Ports are left alone: what listens on the loopback inside is a test's.
// Source: landlock(7); include/uapi/linux/landlock.h of Linux 6.12.
inline constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
// Which version has what.  The first knows no way to let a file change its folder.
inline constexpr long kLandlockRefer = 2, kLandlockTruncate = 3, kLandlockScopes = 6;

inline constexpr uint64_t kWriteFile = 1 << 1, kTruncate = 1 << 14;
// Removing, and making folders, files, sockets, pipes and links, and taking them elsewhere.
inline constexpr uint64_t kChangeFolder =
    1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13;
inline constexpr uint64_t kMakeDevice = 1 << 6 | 1 << 11;  // granted nowhere
inline constexpr uint64_t kOtherSockets = 1 << 0, kOtherProcesses = 1 << 1;

inline long landlock_version() {
  return ::syscall(kCreateRuleset, nullptr, 0, 1);
}

// Below `folder`, or of that one file; what is not there is not to be written.
inline bool let_write(int rules, const char* place, uint64_t access) {
  const int fd = ::open(place, O_PATH | O_CLOEXEC);
  if (fd < 0) return true;
  struct stat st {};
  if (::fstat(fd, &st) != 0) return false;
  if (!S_ISDIR(st.st_mode)) access &= kWriteFile | kTruncate;
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__((packed)) const rule = {access, fd};
  constexpr int kBeneath = 1;
  const bool done = ::syscall(kAddRule, rules, kBeneath, &rule, 0) == 0;
  (void)::close(fd);
  return done;
}

// No places: everything may be written that may be without this.  False, and errno: the kernel has
// it and does not do it.
inline bool keep_within(char* const* places, int count) {
  const long version = landlock_version();
  if (version < kLandlockRefer) return true;
  struct {
    uint64_t files, ports, scopes;
  } rules = {};
  if (0 < count) rules.files = kWriteFile | kChangeFolder | kMakeDevice;
  if (0 < count && kLandlockTruncate <= version) rules.files |= kTruncate;
  if (kLandlockScopes <= version) rules.scopes = kOtherSockets | kOtherProcesses;
  if (rules.files == 0 && rules.scopes == 0) return true;
  const int fd = static_cast<int>(::syscall(kCreateRuleset, &rules, sizeof rules, 0));
  if (fd < 0) return false;
  for (int i = 0; i < count; ++i)
    if (!let_write(fd, places[i], rules.files & ~kMakeDevice)) return false;
  const bool done =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(kRestrictSelf, fd, 0) == 0;
  (void)::close(fd);
  return done;
}

// The first steps of a sandbox's first process under a kernel in user space (gVisor).
// Source: runsc 20221219.

// runsc passes on the first three descriptors only: the status comes as the standard input, and
// moves to where it is expected.
inline bool take_status_from_input(int status_fd) {
  if (::dup3(0, status_fd, O_CLOEXEC) < 0) return false;
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return 0 <= nothing && ::dup2(nothing, 0) == 0 && ::close(nothing) == 0;
}

// Devices that gVisor puts into every /dev, a file system of this container alone, and no image
// asks for.
inline void remove_spare_devices() {
  (void)::unlink("/dev/fuse");
  (void)::unlink("/dev/net/tun");
}

// gVisor opens descriptors of any process for any other of the same user, whether or not it may be
// traced: the first process keeps none of those that it was given.
inline void close_all_given(int status_fd) {
  for (int fd = 0; fd <= status_fd; ++fd) (void)::close(fd);
}
}  // namespace proctor

namespace {
// The first process of every sandbox:
//   init [--userspace] [--watch FD] [--in FOLDER] [--disk FOLDER] [--write PLACE]... --
//        PROGRAM ARGUMENT...
// Runs the program, buries the orphans, and tells its end on descriptor 3 in the words of
// boxed_sandbox.h.  When that end of the pipe has no reader left (the worker was killed) it ends,
// and the kernel ends all else inside.  Where that descriptor is not open, its own exit code alone
// tells: the runtime reports that one.  Where descriptor 4 is open, a filter of system calls,
// limits and the program's environment are read from there (read_given), and it has no other; with
// --userspace they come from where the status goes.  With --disk it looks four times a second
// whether the file system of FOLDER is full, and says so in that code (lacks.h), for the program
// may outlive whoever else would look.  With --in the program runs in FOLDER, which a runtime would
// have to enter before there is anybody whose failure it is that he cannot.  Where the kernel has
// Landlock the program has its scopes, and writes in those places alone (keep_within).
// With --watch two filters are read from descriptor 5: the program's, which asks us about some
// calls (attempts.h), and our own, which all else obey.  FD takes the lines about those calls.
// `init --lacks` is no first process, but the program of one: it says what of the host's nobody can
// have any more (lacks.h).
//
// A program inside can neither trace it nor reach its descriptors through /proc, so the code under
// test cannot write the exit code itself.  Static, in the image of a stranger: it has the kernel
// and no more.
// Source: pid_namespaces(7), PR_SET_DUMPABLE in prctl(2).
constexpr int kStatusFd = 3, kGivenFd = 4, kWatchFd = 5;
constexpr int kBadUse = 125, kCannotEnter = 126, kCannotRun = 127, kKilled = 128 + SIGKILL;

constexpr int kPlacesMost = 256;
constexpr int kLook = 250;  // ms between two looks at the disk

bool quiet = false;

// `{ "KEY": VALUE }\n` in one write, which a pipe takes whole.
void tell_on(int fd, const char* key, int value) {
  proctor::StatusLine line;
  line.say("{ \"", key, "\": ", static_cast<uint64_t>(value), " }\n");
  line.write_to(fd);
}

void tell(const char* key, int value) {
  if (!quiet) tell_on(kStatusFd, key, value);
}

struct Places {
  char* at[kPlacesMost];
  int count;
};

// As a shell says it.
void enter(const char* folder) {
  if (::chdir(folder) == 0 && ::setenv("PWD", folder, 1) == 0) return;
  proctor::StatusLine line;
  line.say("cd: ", folder, ": ", ::strerror(errno), "\n");
  line.write_to(STDERR_FILENO);
  ::_exit(kCannotEnter);
}

// Calls that are watched: by which filter, the one that we obey ourselves, and a pipe that takes
// the number of the descriptor by which the first one asks.
struct Watched {
  bool wanted = false;
  int status = -1;
  proctor::Filter theirs, ours;
  int listener[2] = {-1, -1};
};

// False: the runtime has not passed the filters on.
bool read_watched(Watched& watched) {
  const bool read = proctor::read_filter(kWatchFd, watched.theirs) &&
                    proctor::read_filter(kWatchFd, watched.ours) && watched.ours.count != 0 &&
                    ::pipe2(watched.listener, O_CLOEXEC) == 0 &&
                    ::fcntl(watched.status, F_SETFD, FD_CLOEXEC) == 0;
  (void)::close(kWatchFd);
  return read;
}

// The child shares our descriptors until it runs a program: the one by which its filter asks is
// then ours.
pid_t fork_with_descriptors() {
  constexpr unsigned long kShareDescriptors = 0x400;  // CLONE_FILES
  return static_cast<pid_t>(::syscall(SYS_clone, kShareDescriptors | SIGCHLD, 0, 0, 0, 0));
}

int take_listener(Watched& watched) {
  int listener = -1;
  (void)!::read(watched.listener[0], &listener, sizeof listener);
  for (int& end : watched.listener) {
    (void)::close(end);
    end = -1;
  }
  // The thread that asks goes on where it waits for us, without a journey between processors.
  (void)::syscall(SYS_ioctl, listener, proctor::kListenerFlags, 1UL);
  return listener;
}

void begin_to_watch(const Watched& watched) {
  ::prctl(PR_SET_DUMPABLE, 1);  // the words of its first program are read like those of all others
  const int listener = proctor::obey_watched(watched.theirs);
  if (0 <= listener && ::write(watched.listener[1], &listener, sizeof listener) == sizeof listener)
    return;
  tell_on(watched.status, "watch-error", errno);
  ::_exit(kCannotRun);
}

[[noreturn]] void become(char** argv, char** envp, const sigset_t& before, const Places& writable,
                         const char* in, const Watched& watched) {
  ::setpgid(0, 0);  // what it signals as its group is not us
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  environ = envp;  // a name without '/' is looked for in its PATH
  if (in != nullptr) enter(in);
  if (proctor::keep_within(writable.at, writable.count)) {
    if (watched.wanted) begin_to_watch(watched);
    ::execvpe(argv[0], argv, environ);
  }
  tell("exec-error", errno);
  ::_exit(kCannotRun);
}

// Buries whoever is dead; the status of `child` when it is among them, else -1.
int bury(pid_t child) {
  int found = -1;
  for (int status = 0;;) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return found;
    if (pid == child) found = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}
}  // namespace

int main(int argc, char** argv, char** envp) {
  if (argc == 2 && ::strcmp(argv[1], "--lacks") == 0) return proctor::say_what_lacks(1);
  ::prctl(PR_SET_DUMPABLE, 0);
  const char* disk = nullptr;
  const char* in = nullptr;
  bool userspace = false, filtered = true;  // else by bwrap
  if (1 < argc && ::strcmp(argv[1], "--userspace") == 0) {
    userspace = true;
    if (!proctor::take_status_from_input(kStatusFd)) return kBadUse;
    proctor::remove_spare_devices();
    ++argv;
    --argc;
  }
  // No word asks for it: a command that looks at us sees the same in every kind of sandbox.
  if (userspace || 0 <= ::fcntl(kGivenFd, F_GETFD)) {
    const int given = userspace ? kStatusFd : kGivenFd;
    proctor::Filter filter;
    if (!proctor::read_filter(given, filter)) return kBadUse;
    filtered = filter.count != 0;
    if (filtered && proctor::obey_filter(filter) < 0) return kBadUse;
    if (!proctor::obey_limits(given)) return kBadUse;
    envp = proctor::read_environment(given);
    if (envp == nullptr) return kBadUse;
    (void)::close(kGivenFd);
  }
  Places writable{};
  Watched watched;
  for (; 4 < argc && ::strcmp(argv[1], "--") != 0; argv += 2, argc -= 2) {
    if (::strcmp(argv[1], "--disk") == 0) {
      disk = argv[2];
    } else if (::strcmp(argv[1], "--in") == 0) {
      in = argv[2];
    } else if (::strcmp(argv[1], "--watch") == 0) {
      watched.wanted = true;
      watched.status = ::atoi(argv[2]);
    } else if (::strcmp(argv[1], "--write") == 0 && writable.count < kPlacesMost) {
      writable.at[writable.count++] = argv[2];
    } else {
      return kBadUse;
    }
  }
  if (argc < 3 || (!watched.wanted && !filtered)) return kBadUse;
  quiet = ::fcntl(kStatusFd, F_SETFD, FD_CLOEXEC) != 0;
  if (watched.wanted && !read_watched(watched)) return kBadUse;
  sigset_t children, before;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, &before);
  const int deaths = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (deaths < 0) return kBadUse;
  tell("child-pid", 1);
  const pid_t child = watched.wanted ? fork_with_descriptors() : ::fork();
  if (child < 0) return kBadUse;
  if (child == 0) become(argv + 2, envp, before, writable, in, watched);
  if (watched.wanted && proctor::obey_filter(watched.ours) < 0) return kBadUse;
  if (userspace) {
    proctor::close_all_given(kStatusFd);
    quiet = true;  // our exit code tells
  }
  bool was_full = false;
  const auto look = [&] {
    struct statvfs st {};
    if (disk != nullptr && !was_full && ::statvfs(disk, &st) == 0) was_full = proctor::is_full(st);
  };
  proctor::AttemptWatch attempts(watched.status, writable.at, writable.count);
  int listener = -1;
  for (;;) {
    look();
    pollfd fds[] = {{deaths, POLLIN, 0},
                    {quiet ? -1 : kStatusFd, 0, 0},
                    {listener, POLLIN, 0},
                    {watched.listener[0], POLLIN, 0}};
    ::poll(fds, 4, disk == nullptr ? -1 : kLook);
    if (fds[1].revents != 0) return kKilled;
    if ((fds[2].revents & POLLIN) != 0) attempts.serve(listener);
    if ((fds[2].revents & POLLHUP) != 0) listener = -1;  // all that were watched are dead
    if (fds[3].revents != 0) listener = take_listener(watched);
    if (fds[0].revents == 0) continue;
    signalfd_siginfo news;
    while (::read(deaths, &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    }
    if (int status = bury(child); 0 <= status) {
      look();
      if (disk != nullptr && status == proctor::kInitSawFullDisk) --status;
      if (was_full) status = proctor::kInitSawFullDisk;
      attempts.tell_untold();
      tell("exit-code", status);
      return status;
    }
  }
}
