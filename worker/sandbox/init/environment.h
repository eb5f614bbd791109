#pragma once
// The environment of the program that a sandbox's first process runs, read from a descriptor: what
// stands in the arguments of a runtime every user of the host sees in the process list, and what
// stands in its configuration lies in a file.
// Without a library: init includes this, and is linked with C's headers alone.
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

namespace proctor {

// What is read: its length in bytes, in the processor's own order, and `NAME=VALUE` with a NUL
// behind each.  Longer than this no kernel lets an environment be.
inline constexpr uint64_t kEnvironmentMost = uint64_t{16} << 20;

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

// Null: it is not what was promised.  Nothing of it stays behind the descriptor, which the runtime
// may hold open as long as it lives; memory is the process's own.
inline char** read_environment(int fd) {
  uint64_t size = 0;
  if (!read_whole(fd, reinterpret_cast<char*>(&size), sizeof size) || kEnvironmentMost < size)
    return nullptr;
  char* texts = static_cast<char*>(new_memory(size + 1));
  if (texts == nullptr || !read_whole(fd, texts, size)) return nullptr;
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

}  // namespace proctor
