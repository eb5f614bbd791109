// System calls that the published list does not have, and that this kernel would serve to anybody:
// by their own numbers, by those of programs of 32 bits, and by those of x32.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "worker/selftest/attack/attack.h"

namespace attack {
namespace {

long pointer(const void* to) {
  return reinterpret_cast<long>(to);
}

// What it would be answered where nothing stands before it is not one of these.
bool refused(long result) {
  return result == -1 && (errno == EPERM || errno == ENOSYS || errno == EAFNOSUPPORT);
}

struct Try {
  const char* what;
  bool (*run)();
};

const Try kByNumber[] = {
    {"a keyring's number", [] { return !refused(::syscall(SYS_keyctl, 0, -3, 0)); }},
    {"a key, asked for",
     [] { return !refused(::syscall(SYS_request_key, "user", "owned", nullptr, 0)); }},
    {"a look at two processes' resources",
     [] { return !refused(::syscall(SYS_kcmp, ::getpid(), ::getpid(), 0, 0, 0)); }},
    {"a descriptor by a process",
     [] {
       const long self = ::syscall(SYS_pidfd_open, ::getpid(), 0);
       return 0 <= self && !refused(::syscall(SYS_pidfd_getfd, self, 1, 0));
     }},
    {"page faults of its own", [] { return !refused(::syscall(SYS_userfaultfd, O_CLOEXEC | 1)); }},
    {"a group of fanotify", [] { return !refused(::syscall(SYS_fanotify_init, 0x200, O_RDONLY)); }},
    {"memory by node",
     [] {
       int mode = 0;
       return !refused(::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0));
     }},
    {"a ring of io_uring",
     [] {
       std::uint64_t parameters[16] = {};
       return !refused(::syscall(SYS_io_uring_setup, 1, parameters));
     }},
    {"file systems by number", [] { return !refused(::syscall(SYS_sysfs, 3)); }},
#if defined(SYS_modify_ldt)
    {"a table of segments",
     [] {
       char table[64];
       return !refused(::syscall(SYS_modify_ldt, 0, table, sizeof table));
     }},
#endif
    {"a call that no kernel has",
     [] { return ::syscall(1'999) != -1 || (errno != ENOSYS && errno != EPERM); }},
};

#if defined(__x86_64__)
// Through the entry of programs of 32 bits; pointers must lie below 4 GiB.
long narrow_call(long number, long a, long b, long c) {
  long result = number;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(a), "c"(b), "d"(c)
               : "r8", "r9", "r10", "r11", "memory");
  if (-4095 <= result && result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

// gVisor's kernel has one table whatever the entry: numbers of programs of 32 bits mean other
// calls.
bool entry_takes_own_numbers() {
  return narrow_call(SYS_getpid, 0, 0, 0) == ::getpid();
}

const Try kByOwnNumbers[] = {
    {"a keyring by the entry of 32 bits",
     [] { return !refused(narrow_call(SYS_keyctl, 0, -3, 0)); }},
    {"a ring of io_uring by the entry of 32 bits",
     [] { return !refused(narrow_call(SYS_io_uring_setup, 1, 0, 0)); }},
    {"page faults by the entry of 32 bits",
     [] { return !refused(narrow_call(SYS_userfaultfd, 0, 0, 0)); }},
};

const Try kByNarrowNumbers[] = {
    {"a keyring by 32 bits", [] { return !refused(narrow_call(288, 0, -3, 0)); }},
    {"a mount by 32 bits", [] { return !refused(narrow_call(21, 0, 0, 0)); }},
    {"a socket of the hypervisor by 32 bits",
     [] { return !refused(narrow_call(359, 40, SOCK_STREAM, 0)); }},
    {"a socket of the hypervisor by socketcall",
     [] {
       void* low = ::mmap(nullptr, 4'096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
       if (low == MAP_FAILED) return false;
       const std::uint32_t arguments[3] = {40, SOCK_STREAM, 0};
       std::memcpy(low, arguments, sizeof arguments);
       return !refused(narrow_call(102, 1, pointer(low), 0));
     }},
    {"a namespace by 32 bits", [] { return !refused(narrow_call(310, 0x1000'0000, 0, 0)); }},
};

const Try kByX32[] = {
    {"a keyring by x32", [] { return !refused(::syscall(0x4000'0000 | SYS_keyctl, 0, -3, 0)); }},
};
#endif

template <class Tries>
void try_all(const Tries& tries) {
  for (const Try& one : tries)
    if (works(one.run)) escaped("%s", one.what);
}

}  // namespace

void unlisted_calls(const Arguments&) {
  try_all(kByNumber);
#if defined(__x86_64__)
  if (works(entry_takes_own_numbers)) {
    try_all(kByOwnNumbers);
  } else {
    try_all(kByNarrowNumbers);
  }
  try_all(kByX32);
#endif
  // Libraries fall back to clone and to their own ways for this answer alone.
  if (works([] {
        std::uint64_t arguments[11] = {};
        return ::syscall(SYS_clone3, arguments, sizeof arguments) != -1 || errno != ENOSYS;
      }))
    escaped("an answer to clone3 that no library understands");
}

}  // namespace attack
