#pragma once
// System calls by number, for a child that lives in its parent's memory until it runs a program.
// A sanitizer's own versions of these functions keep accounts there (descriptors, signal
// handlers), and what the child does to its copies would be booked as the parent's.
// Async-signal-safe. Source: vfork(2), clone(2), rt_sigaction(2).
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace proctor::raw {

inline bool close(int fd) {
  return ::syscall(SYS_close, fd) == 0;
}
inline bool dup_to(int from, int to) {
  return ::syscall(SYS_dup3, from, to, 0) == to;
}
inline bool write(int fd, const char* bytes, std::size_t size) {
  return ::syscall(SYS_write, fd, bytes, size) == static_cast<long>(size);
}
// The default of signal `number`.
inline void forget_handler(int number) {
  struct {  // the kernel's, not libc's: all zero is SIG_DFL without flags
    void* handler = nullptr;
    unsigned long flags = 0;
    void* restorer = nullptr;
    unsigned long mask = 0;
  } const none;
  ::syscall(SYS_rt_sigaction, number, &none, nullptr, sizeof none.mask);
}

}  // namespace proctor::raw
