// Calls that are watched: which ones the filter asks about, and the reading of what init tells.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "common/base/digest.h"
#include "tests/unit/sandbox/bpf_machine.h"
#include "worker/sandbox/init/attempts.h"
#include "worker/sandbox/seccomp_filter.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr int kMostCalls = 700;  // more than any table has

seccomp_data call_of(long number, std::initializer_list<std::uint64_t> args = {}) {
  seccomp_data call{};
  call.arch = seccomp_arch_native();
  call.nr = static_cast<int>(number);
  std::copy(args.begin(), args.end(), std::begin(call.args));
  return call;
}

bool asks(const BpfMachine& filter, long number, std::initializer_list<std::uint64_t> args = {}) {
  return filter.run(call_of(number, args)) == SECCOMP_RET_USER_NOTIF;
}

bool goes_on(long number) {
  return std::ranges::any_of(kCallLooks, [&](const CallLook& l) { return l.number == number; });
}

BpfMachine watched(bool network, bool programs) {
  return BpfMachine(
      make_seccomp_program(Programs::kNative, watch_rules(network, programs)).value());
}

std::string line_of(long number, std::string_view bytes) {
  return "attempt " + std::to_string(number) + " 12 " + to_hex(bytes);
}

std::string target_of(long number, std::string_view bytes) {
  const auto attempt = parse_attempt(line_of(number, bytes));
  REQUIRE(attempt);
  CHECK(attempt->pid == 12);
  return attempt->target;
}

template <class Address>
std::string_view bytes_of(const Address& address) {
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

sockaddr_in internet(const char* address, unsigned short port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  REQUIRE(::inet_pton(AF_INET, address, &out.sin_addr) == 1);
  return out;
}

sockaddr_in6 internet6(const char* address, unsigned short port) {
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  REQUIRE(::inet_pton(AF_INET6, address, &out.sin6_addr) == 1);
  return out;
}

}  // namespace

TEST_SUITE("watched calls") {
  TEST_CASE("init lets go on what the filter allows unwatched and refuses what it refuses") {
    const BpfMachine plain(make_seccomp_program(Programs::kNative).value());
    for (const bool network : {false, true})
      for (const bool programs : {false, true}) {
        const BpfMachine filter = watched(network, programs);
        for (int nr = 0; nr < kMostCalls; ++nr)
          for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{CLONE_NEWUSER},
                                            std::uint64_t{0xffff'ff9c}, std::uint64_t{16}})
            for (const std::uint64_t second : {std::uint64_t{0}, std::uint64_t{1}}) {
              const seccomp_data call = call_of(nr, {first, second, O_RDWR, 0, 1});
              const int unwatched = plain.answer(call);
              CAPTURE(nr);
              CAPTURE(first);
              if (filter.run(call) == SECCOMP_RET_USER_NOTIF)
                CHECK(unwatched == (goes_on(nr) ? 0 : EPERM));
              else
                CHECK(filter.answer(call) == unwatched);
            }
      }
  }

  TEST_CASE("the filter asks about what is refused, and about what may write or reach out") {
    const BpfMachine filter = watched(false, false);
    for (const long number :
         {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_setns, SYS_bpf, SYS_keyctl, SYS_add_key,
          SYS_kexec_load, SYS_init_module, SYS_reboot, SYS_chroot, SYS_perf_event_open,
          SYS_userfaultfd, SYS_connect, SYS_bind})
      CHECK(asks(filter, number));
    CHECK(asks(filter, SYS_unshare, {CLONE_NEWUSER}));
    CHECK_FALSE(asks(filter, SYS_unshare, {CLONE_FILES}));
    CHECK(asks(filter, SYS_clone, {CLONE_NEWNET | SIGCHLD}));
    CHECK_FALSE(asks(filter, SYS_clone, {SIGCHLD}));
    CHECK(asks(filter, SYS_ptrace, {PTRACE_ATTACH, 1}));
    CHECK_FALSE(asks(filter, SYS_ptrace, {PTRACE_ATTACH, 2}));
    CHECK_FALSE(asks(filter, SYS_ptrace, {PTRACE_TRACEME, 1}));
    CHECK_FALSE(asks(filter, SYS_openat, {0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY}));
    CHECK_FALSE(asks(filter, SYS_openat, {0, 0, O_RDONLY | O_CREAT}));
    for (const std::uint64_t flags : {O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC})
      CHECK(asks(filter, SYS_openat, {0, 0, flags}));
    for (const long number : {SYS_openat2, SYS_linkat, SYS_symlinkat, SYS_renameat2, SYS_mkdirat,
                              SYS_mknodat, SYS_fchmodat, SYS_fchownat, SYS_setxattr, SYS_lsetxattr,
                              SYS_removexattr, SYS_lremovexattr, SYS_truncate})
      CHECK(asks(filter, number, {3, 0, 4}));  // by a folder's descriptor too
    CHECK(asks(filter, SYS_unlinkat, {3, 1, 0}));
    CHECK(asks(filter, SYS_unlinkat, {3, 1, AT_REMOVEDIR}));
    CHECK(asks(filter, SYS_utimensat, {3, 4096}));
    CHECK_FALSE(asks(filter, SYS_utimensat, {3, 0}));  // its file was opened to write it
    for (const long by_descriptor : {SYS_fchmod, SYS_fchown, SYS_fsetxattr, SYS_ftruncate})
      CHECK_FALSE(asks(filter, by_descriptor, {3, 4096}));
    CHECK_FALSE(asks(filter, SYS_name_to_handle_at, {3, 4096}));  // it opens and writes nothing
    // Where libseccomp does not know it, it is not there.
    if (call_number(seccomp_arch_native(), "fchmodat2") == kChmodByFlags)
      CHECK(asks(filter, kChmodByFlags, {3}));
#ifdef SYS_open
    for (const long number :
         {SYS_mkdir, SYS_rmdir, SYS_mknod, SYS_utime, SYS_utimes, SYS_futimesat})
      CHECK(asks(filter, number));
#endif
    CHECK(asks(filter, SYS_unlinkat, {static_cast<std::uint32_t>(AT_FDCWD)}));
    CHECK(asks(filter, SYS_sendto, {3, 0, 0, 0, 4096}));
    CHECK_FALSE(asks(filter, SYS_sendto, {3}));
    // An option, which no sandbox is left by.
    CHECK_FALSE(asks(filter, SYS_setpriority, {0, 0, 0xffff'ffff}));
    CHECK_FALSE(asks(filter, SYS_execve));
    CHECK(asks(watched(false, true), SYS_execve));
    for (const long number : {SYS_connect, SYS_sendmsg, SYS_sendmmsg}) {
      CHECK(asks(filter, number));
      CHECK_FALSE(asks(watched(true, false), number));
    }
  }

  TEST_CASE("a line of init's is read as a call and its target") {
    const auto refused = parse_attempt("attempt " + std::to_string(SYS_mount) + " 7 -");
    REQUIRE(refused);
    CHECK(refused->call == "mount");
    CHECK(refused->pid == 7);
    CHECK(refused->target.empty());
    CHECK(parse_attempt("attempt " + std::to_string(SYS_connect) + " 7 ?")->target == "?");
    CHECK(target_of(SYS_connect, bytes_of(internet("203.0.113.1", 80))) == "203.0.113.1:80");
    CHECK(target_of(SYS_bind, bytes_of(internet6("2001:db8::1", 443))) == "[2001:db8::1]:443");
    CHECK(target_of(SYS_sendmsg, bytes_of(internet6("::ffff:203.0.113.1", 53))) ==
          "203.0.113.1:53");
    CHECK(target_of(SYS_openat, "/etc/passwd") == "/etc/passwd");
    CHECK(target_of(SYS_openat, "/etc/a\nb\x1b") == "/etc/a\\x0ab\\x1b");
    for (const char* line : {"attempt", "attempt 1", "attempt 1 2", "attempt x 2 -", "untold 1 2",
                             "attempt 257 1 zz", "{ \"exit-code\": 0 }", ""})
      CHECK_FALSE(parse_attempt(line));
  }

  TEST_CASE("an attempt is of a class, by the rows of the calls") {
    using enum CallAttempt::What;
    const auto what_of = [](long number, const std::string& target = "-") {
      const auto attempt = parse_attempt("attempt " + std::to_string(number) + " 7 " + target);
      REQUIRE(attempt);
      return attempt->what;
    };
    for (const long number : {SYS_mount, SYS_setns, SYS_unshare, SYS_clone, SYS_ptrace, SYS_bpf,
                              SYS_keyctl, SYS_kexec_load, SYS_open_by_handle_at})
      CHECK(what_of(number) == kEscape);
    for (const long number : {SYS_chroot, SYS_perf_event_open, SYS_userfaultfd, SYS_settimeofday})
      CHECK(what_of(number) == kHarmless);
    for (const long number : {SYS_connect, SYS_bind, SYS_sendto, SYS_sendmsg, SYS_sendmmsg})
      CHECK(what_of(number) == kAddress);
    const std::string path = to_hex("/etc/x");
    for (const long number : {SYS_openat, SYS_openat2, SYS_symlinkat, SYS_truncate, SYS_mkdirat,
                              SYS_utimensat, SYS_setxattr, SYS_mknodat})
      CHECK(what_of(number, path) == kFile);
    CHECK(what_of(kChmodByFlags, path) == kFile);
    CHECK(what_of(SYS_mknodat) == kHarmless);  // a device in a place of its own
    for (const long number : {SYS_execve, SYS_execveat}) CHECK(what_of(number) == kProgram);
  }

  TEST_CASE("a program is told by its words as they are") {
    using namespace std::string_literals;
    CHECK(target_of(SYS_execve, "/bin/rm\0rm\0-rf\0/ \n'\0\0"s) == "rm\0-rf\0/ \n'\0\0"s);
    CHECK(target_of(SYS_execve, "/bin/rm\0/usr/bin/rm\0-rf\0"s) == "/usr/bin/rm\0-rf\0"s);
    // Another name than the program's own is not the program.
    CHECK(target_of(SYS_execve, "/bin/rm\0ls\0-rf\0"s) == "/bin/rm\0-rf\0"s);
    CHECK(target_of(SYS_execveat, "\0ls\0"s) == "ls\0"s);  // by a descriptor alone
    CHECK(target_of(SYS_execve, "/bin/true\0"s) == "/bin/true");
  }

  TEST_CASE("loopback and the unspecified address are this host's own") {
    const auto loopback = [](const auto& address) {
      return is_loopback(reinterpret_cast<const char*>(&address), sizeof address);
    };
    for (const char* own : {"127.0.0.1", "127.8.8.8", "0.0.0.0"})
      CHECK(loopback(internet(own, 80)));
    for (const char* other : {"203.0.113.1", "10.0.0.1", "128.0.0.1", "0.0.0.1"})
      CHECK_FALSE(loopback(internet(other, 80)));
    for (const char* own : {"::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"})
      CHECK(loopback(internet6(own, 80)));
    for (const char* other : {"2001:db8::1", "fe80::1", "::2", "::ffff:203.0.113.1", "ff02::1"})
      CHECK_FALSE(loopback(internet6(other, 80)));
    CHECK(is_loopback("\x01\x00/tmp/socket", 13));  // AF_UNIX
    CHECK(is_loopback("", 0));
    CHECK(is_loopback("\x02", 1));
  }

  TEST_CASE("the host's places are those that a command was not given") {
    char workspace[] = "/workspace", device[] = "/dev", cache[] = "/etc/cache";
    char* const places[] = {workspace, device, cache};
    for (const char* path :
         {"/etc/passwd", "/etc", "/usr/bin/cc", "/boot/vmlinuz", "/lib/x.so", "/lib64/x.so",
          "/root/.bashrc", "/sys/kernel/x", "/proc/sys/vm/x", "/proc/sysrq-trigger", "/proc/1/mem",
          "/dev/mem", "/dev/sda", "/dev", "/etc/profile.d/__pycache__.sh", "/usr/bin/__pycache__x"})
      CHECK(is_hosts(path, places, 3));
    for (const char* path :
         {"/workspace/etc/passwd", "/tmp/x", "/etcetera", "/usr/lib/x", "/usr/local/bin/x",
          "/etc/cache/x", "/dev/null", "/dev/pts/3", "/dev/shm/x", "/proc/12/oom_score_adj",
          "/libexec/x", "/lib/python3/__pycache__/x.pyc", "/usr/bin/__pycache__",
          "/etc/__pycache__x/__pycache__/y", "/"})
      CHECK_FALSE(is_hosts(path, places, 3));
    // A program of an image has its whole root, but not the kernel.
    CHECK_FALSE(is_hosts("/etc/passwd", places, 0));
    CHECK(is_hosts("/proc/sys/vm/x", places, 0));
  }
}
