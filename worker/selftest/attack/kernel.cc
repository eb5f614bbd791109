#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "worker/selftest/attack/attack.h"

namespace attack {
// System calls that the published list does not have, and that this kernel would serve to anybody:
// by their own numbers, by those of programs of 32 bits, and by those of x32.

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
template <class Tries>
void try_all(const Tries& tries) {
  for (const Try& one : tries)
    if (works(one.run)) escaped("%s", one.what);
}

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

// Privileges, namespaces, mounts, clocks, keyrings: what only a ruler of the host may do.

namespace {
bool call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e) != -1;
}
}  // namespace

void privileges(const Arguments&) {
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) escaped("set-id programs would be obeyed");
  if (::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2) escaped("there is no filter of system calls");
  for (int cap = 0; cap < 41; ++cap)
    if (::prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) escaped("capability %d can be had", cap);
  const Try tries[] = {
      {"a user namespace", [] { return ::unshare(CLONE_NEWUSER) == 0; }},
      {"a mount namespace", [] { return ::unshare(CLONE_NEWNS) == 0; }},
      {"a network namespace", [] { return ::unshare(CLONE_NEWNET) == 0; }},
      {"a pid namespace", [] { return ::unshare(CLONE_NEWPID) == 0; }},
      {"a namespace by clone3",
       [] {
         std::uint64_t args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
         const long pid = ::syscall(SYS_clone3, args, sizeof args);
         if (pid == 0) ::_exit(0);
         return 0 < pid;
       }},
      {"a mount", [] { return ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0; }},
      {"a root made writable",
       [] { return ::mount("", "/", nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0; }},
      {"an unmount", [] { return ::umount2("/proc", MNT_DETACH) == 0; }},
      {"a mount by fsopen", [] { return call(SYS_fsopen, reinterpret_cast<long>("tmpfs")); }},
      {"a copy of a mount",
       [] { return call(SYS_open_tree, AT_FDCWD, reinterpret_cast<long>("/"), 1); }},
      {"another root", [] { return ::chroot("/tmp") == 0; }},
      {"the host's name", [] { return ::sethostname("owned", 5) == 0; }},
      {"more than its share of the scheduler",
       [] {
         sched_param param{};
         param.sched_priority = 1;
         return ::sched_setscheduler(0, SCHED_FIFO, &param) == 0;
       }},
      {"a better priority", [] { return ::setpriority(PRIO_PROCESS, 0, -10) == 0; }},
      {"a higher limit",
       [] {
         rlimit more{};
         ::getrlimit(RLIMIT_NOFILE, &more);
         more.rlim_cur = more.rlim_max = more.rlim_max + 100'000;
         return ::setrlimit(RLIMIT_NOFILE, &more) == 0;
       }},
      {"a core dump's limit",
       [] {
         const rlimit more{RLIM_INFINITY, RLIM_INFINITY};
         return ::setrlimit(RLIMIT_CORE, &more) == 0;
       }},
      {"another user", [] { return ::setuid(12'345) == 0; }},
      {"another group", [] { return ::setgid(12'345) == 0; }},
      {"a lease of a file of the host",
       [] {
         const int fd = ::open("/bin/sh", O_RDONLY | O_CLOEXEC);
         return 0 <= fd && ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
       }},
      {"machine code for a socket",
       [] {
         sock_filter all = BPF_STMT(BPF_RET | BPF_K, 1);
         const sock_fprog program{1, &all};
         const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
         return 0 <= fd &&
                ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
       }},
      {"a device",
       [] {
         return ::mknod("/tmp/device", S_IFBLK | 0600, 0x800) == 0 &&
                0 <= ::open("/tmp/device", O_RDONLY | O_CLOEXEC);
       }},
  };
  try_all(tries);
}

void kernel_calls(const Arguments&) {
  const Try tries[] = {
    {"the clock was set",
     [] {
       timespec now{};
       ::clock_gettime(CLOCK_REALTIME, &now);
       return ::clock_settime(CLOCK_REALTIME, &now) == 0;
     }},
    {"the clock was set by settimeofday",
     [] {
       timeval now{};
       ::gettimeofday(&now, nullptr);
       return ::settimeofday(&now, nullptr) == 0;
     }},
    {"the clock was adjusted",
     [] {
       timex adjust{};
       adjust.modes = ADJ_OFFSET;
       return ::adjtimex(&adjust) != -1;
     }},
    {"a key in a keyring",
     [] {
       return call(SYS_add_key, reinterpret_cast<long>("user"), reinterpret_cast<long>("owned"),
                   reinterpret_cast<long>("x"), 1, -3);
     }},
    {"a keyring", [] { return call(SYS_keyctl, 0, -3, 1); }},
    {"a program in the kernel",
     [] {
       std::uint32_t attributes[32] = {1, 4, 4, 1};
       return call(SYS_bpf, 0, reinterpret_cast<long>(attributes), sizeof attributes);
     }},
    {"performance events",
     [] {
       std::uint32_t attributes[32] = {1, 128};
       return call(SYS_perf_event_open, reinterpret_cast<long>(attributes), -1, 0, -1, 0);
     }},
    {"a module",
     [] {
       return call(SYS_init_module, reinterpret_cast<long>(""), 0, reinterpret_cast<long>(""));
     }},
    {"another kernel", [] { return call(SYS_kexec_load, 0, 0, 0, 0); }},
    {"swap", [] { return ::swapon("/tmp/none", 0) == 0; }},
    {"the kernel's log", [] { return call(SYS_syslog, 10); }},
    {"accounting", [] { return ::acct(nullptr) == 0; }},
    {"a reboot's switch", [] { return ::reboot(RB_DISABLE_CAD) == 0; }},
    {"quotas", [] { return call(SYS_quotactl, 0x800001 << 8, 0, 0, 0); }},
    {"a file by its handle",
     [] {
       std::uint32_t handle[34] = {8, 1, 2, 0};
       return call(SYS_open_by_handle_at, AT_FDCWD, reinterpret_cast<long>(handle), 0);
     }},
#if defined(SYS_iopl)
    {"the machine's ports", [] { return call(SYS_iopl, 3); }},
#endif
  };
  try_all(tries);
}
}  // namespace attack
