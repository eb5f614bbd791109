#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "worker/selftest/attack/attack.h"
#include "worker/selftest/attack_program.h"

namespace attack {
// Attacks nobody: stands still, so that the host can look at a process of this sandbox.

// The name comes first: who reads the line below finds a process of that name on its own kernel.
void stand(const Arguments&) {
  ::prctl(PR_SET_NAME, proctor::kStandName, 0, 0, 0);
  note("%s", proctor::kStandsLine);
  for (;;) ::pause();
}

// `attack NAME KEY=VALUE...`: one attack.  `sh -c "... attack NAME ..."`: the same, for images that
// hold nothing else, in which this program is /bin/sh.

namespace {
constexpr Attack kAttacks[] = {{"stand", stand},
                               {"fork-bomb", fork_bomb},
                               {"memory-bomb", memory_bomb},
                               {"output-flood", output_flood},
                               {"spin", spin},
                               {"fill-files", fill_files},
                               {"fill-empty", fill_empty},
                               {"fill-memory-folders", fill_memory_folders},
                               {"survivors", survivors},
                               {"kill-all", kill_all},
                               {"one-large-file", one_large_file},
                               {"deep-folders", deep_folders},
                               {"exhaust-descriptors", exhaust_descriptors},
                               {"hold-sockets", hold_sockets},
                               {"host-files", host_files},
                               {"other-processes", other_processes},
                               {"sandbox-init", sandbox_init},
                               {"network", network},
                               {"privileges", privileges},
                               {"kernel-calls", kernel_calls},
                               {"unlisted-calls", unlisted_calls},
                               {"odd-names", odd_names},
                               {"hold", hold},
                               {"need", need},
                               {"mark-shared", mark_shared},
                               {"see-shared", see_shared}};
constexpr int kBadUse = 2;
constexpr int kWordsMax = 32;

void say(const char* prefix, const char* format, va_list args) {
  std::fputs(prefix, stdout);
  std::vprintf(format, args);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

int run(int count, char** words) {
  if (count < 1) return kBadUse;
  for (const Attack& attack : kAttacks) {
    if (std::strcmp(attack.name, words[0]) != 0) continue;
    attack.run(Arguments{count - 1, words + 1});
    note("DONE");
    return 0;
  }
  std::fprintf(stderr, "attack: there is no %s\n", words[0]);
  return kBadUse;
}

// Of a command line only the words after the one that ends in "/attack".
int run_line(char* line) {
  char* words[kWordsMax];
  int count = 0;
  bool found = false;
  for (char* word = std::strtok(line, " "); word != nullptr; word = std::strtok(nullptr, " ")) {
    const std::size_t length = std::strlen(word);
    if (!found) {
      found = 7 <= length && std::strcmp(word + length - 7, "/attack") == 0;
    } else if (count < kWordsMax) {
      words[count++] = word;
    }
  }
  return run(count, words);
}
}  // namespace

const char* Arguments::text(const char* key, const char* otherwise) const {
  const std::size_t length = std::strlen(key);
  for (int i = 0; i < count; ++i)
    if (std::strncmp(words[i], key, length) == 0 && words[i][length] == '=')
      return words[i] + length + 1;
  return otherwise;
}

long Arguments::number(const char* key, long otherwise) const {
  const char* value = text(key, nullptr);
  return value == nullptr ? otherwise : std::strtol(value, nullptr, 10);
}

void raise_descriptors() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

void escaped(const char* format, ...) {
  va_list args;
  va_start(args, format);
  say("ESCAPED: ", format, args);
  va_end(args);
}

void beyond(const char* format, ...) {
  va_list args;
  va_start(args, format);
  say("BEYOND: ", format, args);
  va_end(args);
}

void note(const char* format, ...) {
  va_list args;
  va_start(args, format);
  say("", format, args);
  va_end(args);
}
}  // namespace attack

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "-c") == 0) return attack::run_line(argv[2]);
  return attack::run(argc - 1, argv + 1);
}
