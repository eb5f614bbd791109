#pragma once
// The attacks of the containment suite, run inside a sandbox by a static program, so that they are
// the same in every image.  Each prints a line "ESCAPED: what" for anything that worked and must
// not have, "BEYOND: what" for what escapes unless it is stopped before its time is over, and
// "DONE" when it came to its end.  Linux only; one process, one thread at the start.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace attack {
// The words of its call: `attack NAME KEY=VALUE...`.
struct Arguments {
  int count = 0;
  char** words = nullptr;
  // The value of KEY, or `otherwise`.
  const char* text(const char* key, const char* otherwise = "") const;
  long number(const char* key, long otherwise) const;
};

// One line on stdout at once, however the process ends.
void escaped(const char* format, ...) __attribute__((format(printf, 1, 2)));
void beyond(const char* format, ...) __attribute__((format(printf, 1, 2)));
void note(const char* format, ...) __attribute__((format(printf, 1, 2)));

// In a child: what works must not change what comes after it.
template <class F>
bool works(F call) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(call() ? 0 : 1);
  int status = 0;
  return 0 < pid && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

// As many open files as it may have.
void raise_descriptors();

struct Attack {
  const char* name;
  void (*run)(const Arguments&);
};

// Never come to an end of their own unless the sandbox stops them.
void fork_bomb(const Arguments& a);
void memory_bomb(const Arguments& a);
void output_flood(const Arguments& a);
void spin(const Arguments& a);
void fill_files(const Arguments& a);
void fill_empty(const Arguments& a);
void fill_memory_folders(const Arguments& a);
void survivors(const Arguments& a);
void kill_all(const Arguments& a);
void hold(const Arguments& a);

// Tries nothing, until it is killed.
void stand(const Arguments& a);

// Come to an end, having tried.
void one_large_file(const Arguments& a);
void deep_folders(const Arguments& a);
void exhaust_descriptors(const Arguments& a);
void hold_sockets(const Arguments& a);
void host_files(const Arguments& a);
void other_processes(const Arguments& a);
void sandbox_init(const Arguments& a);
void network(const Arguments& a);
void privileges(const Arguments& a);
void kernel_calls(const Arguments& a);
void unlisted_calls(const Arguments& a);
void odd_names(const Arguments& a);
void need(const Arguments& a);
void mark_shared(const Arguments& a);
void see_shared(const Arguments& a);
}  // namespace attack
