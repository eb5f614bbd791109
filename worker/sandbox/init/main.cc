// The first process of every sandbox:
//   init [--userspace] [--in FOLDER] [--disk FOLDER] [--write PLACE]... -- PROGRAM ARGUMENT...
// Runs the program, buries the orphans, and tells its end on descriptor 3 in the words of
// boxed_process.h. When that end of the pipe has no reader left (the worker was killed) it ends,
// and the kernel ends all else inside. Where that descriptor is not open, its own exit code alone
// tells: the runtime reports that one. Where descriptor 4 is open, a filter of system calls, limits
// and the program's environment are read from there (given.h), and it has no other; with
// --userspace they come from where the status goes. With --disk it looks four times a second
// whether the file system of FOLDER is full, and says so in that code (full_disk.h), for the
// program may outlive whoever else would look. With --in the program runs in FOLDER, which a
// runtime would have to enter before there is anybody whose failure it is that he cannot. Where the
// kernel has Landlock the program has its scopes, and writes in those places alone (landlock.h).
// `init --lacks` is no first process, but the program of one: it says what of the host's nobody can
// have any more (lacks.h).
//
// Nothing inside may trace it or reach its descriptors through /proc, so the code under test cannot
// write the exit code itself.  Static, in the image of a stranger: nothing but the kernel is there.
// Source: pid_namespaces(7), PR_SET_DUMPABLE in prctl(2).
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// Headers of C alone: it is linked with musl where that is (cmake/ProctorTargets.cmake), whose
// start does not ask the processor for its features.  Under a hypervisor each such question is a
// trap, and glibc asks for 0.6 ms of them.
#include <errno.h>
#include <string.h>

#include "worker/sandbox/init/full_disk.h"
#include "worker/sandbox/init/given.h"
#include "worker/sandbox/init/lacks.h"
#include "worker/sandbox/init/landlock.h"
#include "worker/sandbox/init/userspace.h"

namespace {

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
