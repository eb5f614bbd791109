#pragma once
// What a sandbox's first process is given on a descriptor: the filter of system calls for itself
// and all that come after it, limits likewise, and the environment of the program that it runs.
// What stands in the arguments of a runtime every user of the host sees in the process list, and
// what stands in its configuration lies in a file.
// Without a library: init includes this, and is linked with C's headers alone.
// Source: PR_SET_SECCOMP in prctl(2); seccomp(2).
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace proctor {

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

}  // namespace proctor
