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

// The instructions of a filter: false where the kernel does not take them.
inline bool obey_filter(int fd) {
  constexpr uint64_t kInstruction = 8;  // bytes of a struct sock_filter
  uint64_t size = 0;
  char* program = read_given(fd, size);
  if (program == nullptr || size % kInstruction != 0 || (size / kInstruction) >> 16 != 0)
    return false;
  struct {  // the kernel's sock_fprog, for which C's headers alone have no name
    unsigned short count;
    char* program;
  } const filter = {static_cast<unsigned short>(size / kInstruction), program};
  constexpr int kByFilter = 2;  // SECCOMP_MODE_FILTER
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, kByFilter, &filter, 0, 0) == 0;
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
//   init [--userspace] [--in FOLDER] [--disk FOLDER] [--write PLACE]... -- PROGRAM ARGUMENT...
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
// `init --lacks` is no first process, but the program of one: it says what of the host's nobody can
// have any more (lacks.h).
//
// A program inside can neither trace it nor reach its descriptors through /proc, so the code under
// test cannot write the exit code itself.  Static, in the image of a stranger: it has the kernel
// and no more.
// Source: pid_namespaces(7), PR_SET_DUMPABLE in prctl(2).
constexpr int kStatusFd = 3, kGivenFd = 4;
constexpr int kBadUse = 125, kCannotEnter = 126, kCannotRun = 127, kKilled = 128 + SIGKILL;

constexpr int kPlacesMost = 256;
constexpr int kLook = 250;  // ms between two looks at the disk

bool quiet = false;

// `{ "KEY": VALUE }\n` in one write, which a pipe takes whole.
void tell(const char* key, int value) {
  if (quiet) return;
  char line[64];
  int n = 0;
  const auto put = [&](const char* text) {
    while (*text != '\0') line[n++] = *text++;
  };
  put("{ \"");
  put(key);
  put("\": ");
  char digits[12];
  int d = 0;
  do digits[d++] = static_cast<char>('0' + value % 10);
  while ((value /= 10) != 0);
  while (0 < d) line[n++] = digits[--d];
  put(" }\n");
  [[maybe_unused]] const ssize_t written = ::write(kStatusFd, line, static_cast<size_t>(n));
}

struct Places {
  char* at[kPlacesMost];
  int count;
};

void complain(const char* text) {
  (void)!::write(STDERR_FILENO, text, ::strlen(text));
}

// As a shell says it.
void enter(const char* folder) {
  if (::chdir(folder) == 0 && ::setenv("PWD", folder, 1) == 0) return;
  const char* const why = ::strerror(errno);
  const char* const words[] = {"cd: ", folder, ": ", why, "\n"};
  for (const char* word : words) complain(word);
  ::_exit(kCannotEnter);
}

[[noreturn]] void become(char** argv, char** envp, const sigset_t& before, const Places& writable,
                         const char* in) {
  ::setpgid(0, 0);  // what it signals as its group is not us
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  environ = envp;  // a name without '/' is looked for in its PATH
  if (in != nullptr) enter(in);
  if (proctor::keep_within(writable.at, writable.count)) ::execvpe(argv[0], argv, environ);
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
  const char* watched = nullptr;
  const char* in = nullptr;
  bool userspace = false;
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
    if (!proctor::obey_filter(given) || !proctor::obey_limits(given)) return kBadUse;
    envp = proctor::read_environment(given);
    if (envp == nullptr) return kBadUse;
    (void)::close(kGivenFd);
  }
  Places writable{};
  for (; 4 < argc && ::strcmp(argv[1], "--") != 0; argv += 2, argc -= 2) {
    if (::strcmp(argv[1], "--disk") == 0) {
      watched = argv[2];
    } else if (::strcmp(argv[1], "--in") == 0) {
      in = argv[2];
    } else if (::strcmp(argv[1], "--write") == 0 && writable.count < kPlacesMost) {
      writable.at[writable.count++] = argv[2];
    } else {
      return kBadUse;
    }
  }
  if (argc < 3) return kBadUse;
  quiet = ::fcntl(kStatusFd, F_SETFD, FD_CLOEXEC) != 0;
  sigset_t children, before;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, &before);
  const int deaths = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (deaths < 0) return kBadUse;
  tell("child-pid", 1);
  const pid_t child = ::fork();
  if (child < 0) return kBadUse;
  if (child == 0) become(argv + 2, envp, before, writable, in);
  if (userspace) {
    proctor::close_all_given(kStatusFd);
    quiet = true;  // our exit code tells
  }
  bool was_full = false;
  const auto look = [&] {
    struct statvfs st {};
    if (watched != nullptr && !was_full && ::statvfs(watched, &st) == 0)
      was_full = proctor::is_full(st);
  };
  for (;;) {
    look();
    pollfd fds[] = {{deaths, POLLIN, 0}, {quiet ? -1 : kStatusFd, 0, 0}};
    ::poll(fds, 2, watched == nullptr ? -1 : kLook);
    if (fds[1].revents != 0) return kKilled;
    signalfd_siginfo news;
    while (::read(deaths, &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
    }
    if (int status = bury(child); 0 <= status) {
      look();
      if (watched != nullptr && status == proctor::kInitSawFullDisk) --status;
      if (was_full) status = proctor::kInitSawFullDisk;
      tell("exit-code", status);
      return status;
    }
  }
}
