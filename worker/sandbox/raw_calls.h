#pragma once
// System calls by number, for a child that lives in its parent's memory until it runs a program.
// A sanitizer's own versions of these functions keep accounts there (descriptors, signal
// handlers), and what the child does to its copies would be booked as the parent's.
// Async-signal-safe.  Source: vfork(2), clone(2), rt_sigaction(2).
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace proctor::raw {
inline bool close(int fd) {
  return ::syscall(SYS_close, fd) == 0;
}
inline int open_to_write(const char* path) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0));
}
inline int open_to_read(const char* path) {
  return static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NOCTTY | O_CLOEXEC, 0));
}
// Not to be read or written: for what only a place's name is asked.
inline int open_place(const char* path) {
  return static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
}
// An empty one, if there is none yet.
inline bool make_file(const char* path, unsigned mode) {
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
  return 0 <= fd && close(static_cast<int>(fd));
}
inline bool dup_to(int from, int to) {
  return ::syscall(SYS_dup3, from, to, 0) == to;
}
inline bool write(int fd, const char* bytes, std::size_t size) {
  return ::syscall(SYS_write, fd, bytes, size) == static_cast<long>(size);
}
// What this process and all that it starts keep keys in is theirs from now on, and empty.  Where
// the kernel has no keys, gives no more of them, or a filter around us refuses, there is the
// sandbox's filter, which knows no call about keys.
inline void leave_keyring() {
  constexpr long kJoinSessionKeyring = 1;
  (void)::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr);
}
// Of this process alone, without asking its parent's threads; for good.
inline bool become_user(unsigned id) {
  return ::syscall(SYS_setgroups, 0, nullptr) == 0 && ::syscall(SYS_setresgid, id, id, id) == 0 &&
         ::syscall(SYS_setresuid, id, id, id) == 0;
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
