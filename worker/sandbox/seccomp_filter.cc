#include "worker/sandbox/seccomp_filter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>

#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/sandbox/init/attempts.h"
#include "worker/sandbox/oci_config.h"

namespace proctor {
namespace {
using Compare = ArgumentTest::Compare;

// Calls that compilers, interpreters, their just-in-time compilers, debuggers, databases, build
// tools and simulators are made of, on processors of 64 and of 32 bits.  ptrace is among them: the
// pid namespace confines it, and debuggers and leak checkers need it.
constexpr std::string_view kAllowed =
    "_llseek _newselect accept accept4 access alarm arch_prctl arm_fadvise64_64 "
    "arm_sync_file_range bind breakpoint brk cacheflush cachestat capget capset chdir chmod "
    "chown chown32 clock_getres clock_getres_time64 clock_gettime clock_gettime64 "
    "clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup "
    "dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 "
    "epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat "
    "faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown "
    "fchown32 fchownat fdatasync fgetxattr flistxattr flock fork fremovexattr "
    "fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex "
    "futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list "
    "get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 "
    "getgid getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid "
    "getpriority getrandom getresgid getresgid32 getresuid getresuid32 getrlimit getrusage "
    "getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr "
    "inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy "
    "io_getevents io_pgetevents io_pgetevents_time64 io_submit ioprio_get ioprio_set ipc kill "
    "landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr "
    "link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise "
    "map_shadow_stack membarrier memfd_create mincore mkdir mkdirat mknod mknodat mlock mlock2 "
    "mlockall mmap mmap2 mprotect mq_getsetattr mq_notify mq_open mq_timedreceive "
    "mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl "
    "msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep nice "
    "newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc "
    "pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 "
    "process_mrelease process_vm_readv process_vm_writev pselect6 pselect6_time64 ptrace "
    "pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv recvfrom recvmmsg "
    "recvmmsg_time64 recvmsg remap_file_pages removexattr rename renameat renameat2 "
    "restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo "
    "rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo "
    "sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr "
    "sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 "
    "sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp "
    "select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg "
    "sendmsg sendto set_robust_list set_thread_area set_tid_address set_tls setfsgid setfsgid32 "
    "setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setregid "
    "setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit "
    "setsid setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown sigaction "
    "sigaltstack signal signalfd signalfd4 sigpending sigprocmask sigreturn sigsuspend splice "
    "stat stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range sync_file_range2 "
    "syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime "
    "timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime "
    "timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64 "
    "ugetrlimit umask uname unlink unlinkat utime utimensat utimensat_time64 utimes vfork "
    "vmsplice wait4 waitid waitpid write writev";

// Calls that rule a machine, or reach beyond the sandbox's namespaces; kernels were attacked by
// some of them without any capability.  A program is told so, in the words that a kernel has for
// it.  By the first ones it would leave its sandbox; honest programs try the others, and do
// without.
constexpr std::string_view kEscapes =
    "add_key bpf delete_module finit_module fsconfig fsmount fsopen fspick init_module "
    "kexec_file_load kexec_load keyctl mount mount_setattr move_mount open_by_handle_at open_tree "
    "pivot_root reboot request_key setns swapoff swapon umount umount2";
constexpr std::string_view kRefused =
    "acct adjtimex chroot clock_adjtime clock_adjtime64 clock_settime clock_settime64 "
    "fanotify_init ioperm iopl kcmp lookup_dcookie perf_event_open pidfd_getfd process_madvise "
    "quotactl quotactl_fd setdomainname sethostname settimeofday stime syslog userfaultfd vhangup";

// "Not there" makes libuv and liburing fall back where EPERM would make some fail.  clone3 has its
// flags, and the old call for all of sockets its arguments, behind a pointer that no filter can
// follow: libraries then use clone and socket, which are looked at below.  The others nobody
// misses.
constexpr std::string_view kAbsent =
    "_sysctl bdflush clone3 create_module get_kernel_syms get_mempolicy io_setup io_uring_enter "
    "io_uring_register io_uring_setup listmount lsm_get_self_attr lsm_list_modules "
    "lsm_set_self_attr mbind memfd_secret migrate_pages modify_ldt move_pages nfsservctl "
    "query_module set_mempolicy set_mempolicy_home_node sgetmask socketcall ssetmask statmount "
    "sysfs uselib ustat vm86 vm86old vserver";

// Flags of clone and unshare.
constexpr std::uint64_t kNewTime = 0x80;  // of unshare alone: for clone it is part of a signal
constexpr std::uint64_t kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                         CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// Typing into a terminal that is not ours (CVE-2017-5226); the kernel looks at 32 bits only.
constexpr std::uint32_t kTypingRequests[] = {TIOCSTI, 0x541C /* TIOCLINUX */};

// A lease makes whoever opens the file wait for its holder, and its owner may take one whatever
// rights he opened it with: in a sandbox whose user is the host's root, on each file of the host.
constexpr std::uint32_t kLeases[] = {F_SETLEASE, F_NOTIFY};

// The machine code that filters become is taken from a room that all of the machine shares.
constexpr std::uint32_t kSocketFilters[] = {SO_ATTACH_FILTER, SO_ATTACH_BPF,
                                            SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF};

// Sockets are of families that a network namespace confines, or that are paths: no other.  On a
// virtual machine AF_VSOCK leads to its host, from every namespace; AF_ALG and others have been
// ways into kernels.  Of AF_NETLINK only what programs ask for addresses and routes.
constexpr std::uint64_t kSocketFamilies[] = {AF_UNIX, AF_INET, AF_INET6};

// Debuggers and sanitizers want addresses that do not move; the last one asks what is set.
constexpr std::uint64_t k32 = PER_LINUX32, kOldName = UNAME26, kFixed = ADDR_NO_RANDOMIZE;
constexpr std::uint64_t kPersonalities[] = {PER_LINUX, k32,          kOldName,   k32 | kOldName,
                                            kFixed,    k32 | kFixed, 0xffff'ffff};

// A rule for all that stand in `names`, one space between two.
CallRule plain(std::string_view names, int error) {
  CallRule out{{}, error};
  while (!names.empty()) out.names.push_back(take_until(names, ' '));
  return out;
}

// The rest that the rules before it leave of this call.
CallRule rest_of(std::string_view call, int error) {
  return {{call}, error, {}, true};
}

void add_namespace_rules(std::vector<CallRule>& out) {
  std::uint64_t any = 0;
  for (const std::uint64_t flag : kNamespaces) any |= flag;
  out.push_back({{"clone"}, 0, {{0, Compare::kMasked, 0, any}}});
  out.push_back(rest_of("clone", EPERM));
  out.push_back({{"unshare"}, 0, {{0, Compare::kMasked, 0, any | kNewTime}}});
  out.push_back(rest_of("unshare", EPERM));
}

void add_socket_rules(std::vector<CallRule>& out) {
  for (const std::string_view call : {"socket", "socketpair"}) {
    for (const std::uint64_t family : kSocketFamilies)
      out.push_back({{call}, 0, {{0, Compare::kEqual, family}}});
    out.push_back(
        {{call}, 0, {{0, Compare::kEqual, AF_NETLINK}, {2, Compare::kEqual, NETLINK_ROUTE}}});
    out.push_back(rest_of(call, EAFNOSUPPORT));
  }
}

// All 32-bit values but those, bit by bit from the highest: as soon as a value differs from all of
// them nothing below matters.
void add_others(std::vector<CallRule>& out, const CallRule& rule, unsigned index,
                std::vector<std::uint32_t> but, int bit, std::uint32_t prefix) {
  const auto mask = static_cast<std::uint32_t>(~((std::uint64_t{1} << (bit + 1)) - 1));
  if (but.empty()) {
    out.push_back(rule);
    out.back().tests.push_back({index, Compare::kMasked, prefix, mask});
    return;
  }
  if (bit < 0) return;  // one of them itself
  for (const std::uint32_t value : {std::uint32_t{0}, std::uint32_t{1}}) {
    std::vector<std::uint32_t> left;
    for (const std::uint32_t one : but)
      if (((one >> bit) & 1U) == value) left.push_back(one);
    add_others(out, rule, index, std::move(left), bit - 1, prefix | value << bit);
  }
}

constexpr int kHighestBit = 31;

ArgumentTest is(unsigned index, std::uint32_t value) {
  return {index, Compare::kMasked, value, 0xffff'ffff};
}

// Refused where this argument, of which the kernel looks at 32 bits, is one of these; where all of
// `first` hold, and else allowed.
template <std::size_t N>
void add_refused(std::vector<CallRule>& out, std::string_view call, unsigned index,
                 const std::uint32_t (&values)[N], const std::vector<ArgumentTest>& first = {}) {
  for (const std::uint32_t value : values) {
    out.push_back({{call}, EPERM, first});
    out.back().tests.push_back(is(index, value));
  }
  add_others(out, {{call}, 0, first, true}, index, {std::begin(values), std::end(values)},
             kHighestBit, 0);
}

void add_refused_options(std::vector<CallRule>& out) {
  add_refused(out, "ioctl", 1, kTypingRequests);
  for (const std::string_view call : {"fcntl", "fcntl64"}) add_refused(out, call, 1, kLeases);
  add_refused(out, "setsockopt", 2, kSocketFilters, {is(1, SOL_SOCKET)});
  add_others(out, {{"setsockopt"}, 0, {}, true}, 1, {SOL_SOCKET}, kHighestBit, 0);
}

std::vector<CallRule> make_rules() {
  std::vector<CallRule> out = {plain(kAllowed, 0), plain(kEscapes, EPERM), plain(kRefused, EPERM)};
  add_namespace_rules(out);
  add_socket_rules(out);
  for (const std::uint64_t one : kPersonalities)
    out.push_back({{"personality"}, 0, {{0, Compare::kEqual, one}}});
  // A better priority; gVisor gives one, in its own books alone, to whoever asks.
  constexpr std::uint64_t kNegative = 0x8000'0000;
  out.push_back({{"setpriority"}, 0, {{2, Compare::kMasked, 0, kNegative}}});
  out.push_back(rest_of("setpriority", EPERM));
  add_refused_options(out);
  out.push_back(plain(kAbsent, ENOSYS));
  return out;
}
}  // namespace

const int kOtherCalls = ENOSYS;

const std::vector<CallRule>& call_rules() {
  static const std::vector<CallRule> all = make_rules();
  return all;
}

namespace {
using Code = std::vector<sock_filter>;

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr unsigned kWord = 32;  // bits

std::uint32_t answer(int error) {
  if (error == kAskListener) return SECCOMP_RET_USER_NOTIF;
  return error == 0 ? kAllow : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

sock_filter instruction(int code, std::uint32_t operand, std::uint8_t if_true = 0,
                        std::uint8_t if_false = 0) {
  return {static_cast<std::uint16_t>(code), if_true, if_false, operand};
}
sock_filter load(std::size_t offset) {
  return instruction(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter give(std::uint32_t action) {
  return instruction(BPF_RET | BPF_K, action);
}
void append(Code& code, const Code& more) {
  code.insert(code.end(), more.begin(), more.end());
}

// Over `skipped` where the number loaded is (or is at least) `operand`: a jump that depends on
// something reaches 255 instructions, one that does not reaches them all.
Code jump_over(int comparison, std::uint32_t operand, const Code& skipped) {
  const int code = BPF_JMP | comparison | BPF_K;
  if (skipped.size() <= std::numeric_limits<std::uint8_t>::max())
    return {instruction(code, operand, static_cast<std::uint8_t>(skipped.size()), 0)};
  return {instruction(code, operand, 0, 1),
          instruction(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(skipped.size()))};
}

// Half an argument, and where it lies.
std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> kWord);
}
std::size_t place(unsigned index, bool upper) {
  constexpr bool kLittle = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  return offsetof(seccomp_data, args) + index * sizeof(std::uint64_t) +
         (upper == kLittle ? sizeof(std::uint32_t) : 0);
}

// Goes on at its end where the test holds, else on to what stands `away` instructions behind it.
Code check(const ArgumentTest& test, std::size_t away) {
  const auto out = static_cast<std::uint8_t>(away);
  const int equal = BPF_JMP | BPF_JEQ | BPF_K;
  switch (test.compare) {
    case Compare::kEqual:
      return {load(place(test.index, true)),
              instruction(equal, high(test.value), 0, static_cast<std::uint8_t>(away + 2)),
              load(place(test.index, false)), instruction(equal, low(test.value), 0, out)};
    case Compare::kMasked:
      PROCTOR_ASSERT(high(test.mask) == 0 && high(test.value) == 0);
      return {load(place(test.index, false)),
              instruction(BPF_ALU | BPF_AND | BPF_K, low(test.mask)),
              instruction(equal, low(test.value), 0, out)};
  }
  PROCTOR_ASSERT(false);
}

// The fate of one call: rules in turn, each of its tests or the next rule.
Code answer_by(const std::vector<const CallRule*>& rules) {
  Code out;
  const CallRule* rest = nullptr;
  for (const CallRule* rule : rules) {
    if (rule->rest) {
      if (rest == nullptr) rest = rule;
      continue;
    }
    Code one = {give(answer(rule->error))};
    for (auto test = rule->tests.rbegin(); test != rule->tests.rend(); ++test) {
      Code tested = check(*test, one.size());
      append(tested, one);
      one = std::move(tested);
    }
    append(out, one);
    if (rule->tests.empty()) return out;
  }
  out.push_back(give(answer(rest != nullptr ? rest->error : kOtherCalls)));
  return out;
}

// Calls that i386 has by numbers of their own, most of them since Linux 4.3 and 5.1, and for which
// libseccomp has made-up ones.  Source: arch/x86/entry/syscalls/syscall_32.tbl.
constexpr std::pair<int, std::string_view> kI386Numbers[] = {
    {359, "socket"},      {360, "socketpair"},  {361, "bind"},       {362, "connect"},
    {363, "listen"},      {364, "accept4"},     {365, "getsockopt"}, {366, "setsockopt"},
    {367, "getsockname"}, {368, "getpeername"}, {369, "sendto"},     {370, "sendmsg"},
    {371, "recvfrom"},    {372, "recvmsg"},     {373, "shutdown"},   {393, "semget"},
    {394, "semctl"},      {395, "shmget"},      {396, "shmctl"},     {397, "shmat"},
    {398, "shmdt"},       {399, "msgget"},      {400, "msgsnd"},     {401, "msgrcv"},
    {402, "msgctl"},      {337, "recvmmsg"},    {345, "sendmmsg"}};

// By the number of the call, which is loaded: from each first number on to the next one's.
using Ranges = std::vector<std::pair<std::uint32_t, Code>>;
Code decide(const Ranges& ranges, std::size_t from, std::size_t to) {
  if (from + 1 == to) return ranges[from].second;
  const std::size_t middle = from + (to - from) / 2;
  const Code below = decide(ranges, from, middle);
  Code out = jump_over(BPF_JGE, ranges[middle].first, below);
  append(out, below);
  append(out, decide(ranges, middle, to));
  return out;
}

Code decide_by_number(std::uint32_t machine, const std::vector<CallRule>& first) {
  std::map<std::uint32_t, std::vector<const CallRule*>> calls;
  for (const std::vector<CallRule>* rules : {&first, &call_rules()}) {
    for (const CallRule& rule : *rules) {
      for (const std::string_view name : rule.names) {
        const int number = call_number(machine, name);
        if (0 <= number)
          calls[static_cast<std::uint32_t>(number)].push_back(&rule);  // else: not there
      }
    }
  }
  const Code other = {give(answer(kOtherCalls))};
  const auto same = [](const Code& a, const Code& b) {
    return a.size() == 1 && b.size() == 1 && a[0].k == b[0].k;
  };
  Ranges ranges;
  const auto begin_at = [&](std::uint32_t number, const Code& code) {
    if (ranges.empty() || !same(ranges.back().second, code)) ranges.emplace_back(number, code);
  };
  std::uint32_t next = 0;
  for (const auto& [number, rules] : calls) {
    if (next < number) begin_at(next, other);
    begin_at(number, answer_by(rules));
    next = number + 1;
  }
  begin_at(next, other);
  return decide(ranges, 0, ranges.size());
}

Json to_json(const ArgumentTest& test) {
  const bool masked = test.compare == Compare::kMasked;
  Json out = {{"index", test.index},
              {"value", masked ? test.mask : test.value},
              {"op", masked ? "SCMP_CMP_MASKED_EQ" : "SCMP_CMP_EQ"}};
  if (masked) out["valueTwo"] = test.value;
  return out;
}

Json to_json(const CallRule& rule) {
  Json out = {{"names", rule.names},
              {"action", rule.error == 0 ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO"}};
  if (rule.error != 0) out["errnoRet"] = rule.error;
  if (!rule.tests.empty()) out["args"] = Json::array();
  for (const ArgumentTest& test : rule.tests) out["args"].push_back(to_json(test));
  return out;
}
}  // namespace

int call_number(std::uint32_t machine, std::string_view name) {
  if (machine == SCMP_ARCH_X86)
    for (const auto& [number, own] : kI386Numbers)
      if (own == name) return number;
  return seccomp_syscall_resolve_name_arch(machine, std::string(name).c_str());
}

Result<std::string> make_seccomp_program(Programs whose, const std::vector<CallRule>& first) {
  const std::uint32_t native = seccomp_arch_native();
  if (seccomp_syscall_resolve_name_arch(native, "exit_group") < 0)
    return Error{Errc::kUnavailable, "seccomp: libseccomp does not know this processor's calls"};
  std::vector<std::uint32_t> machines = {native};
  if (whose == Programs::kAlso32Bits && native == SCMP_ARCH_X86_64)
    machines.push_back(SCMP_ARCH_X86);
  // Calls through another machine's table would pass by these rules.
  Code out = {give(answer(ENOSYS))};
  for (const std::uint32_t machine : machines) {
    Code next = {load(offsetof(seccomp_data, nr))};
    append(next, decide_by_number(machine, machine == native ? first : std::vector<CallRule>()));
    // Not this machine: over what is its own.
    Code one = {load(offsetof(seccomp_data, arch)),
                instruction(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
                instruction(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(next.size()))};
    append(one, next);
    append(one, out);
    out = std::move(one);
  }
  PROCTOR_ASSERT(out.size() <= BPF_MAXINSNS);
  return std::string(reinterpret_cast<const char*>(out.data()), out.size() * sizeof(sock_filter));
}

Json seccomp_profile() {
  Json rules = Json::array();
  // A refusal needs no rule there, and must have none: libseccomp looks at sockets of 32 bits
  // by their family only where nothing speaks against it.
  for (const CallRule& rule : call_rules())
    if (rule.error == 0 || (rule.error == ENOSYS && !rule.rest)) rules.push_back(to_json(rule));
  const auto machine = [](const char* name, const char* narrow) {
    return Json{{"architecture", name}, {"subArchitectures", Json::array({narrow})}};
  };
  return {{"defaultAction", "SCMP_ACT_ERRNO"},
          {"archMap", Json::array({machine("SCMP_ARCH_X86_64", "SCMP_ARCH_X86"),
                                   machine("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM")})},
          {"syscalls", std::move(rules)}};
}

static_assert(kAttemptsTold == kAttemptLines);

namespace {
ArgumentTest has(unsigned index, std::uint32_t bits) {
  return {index, Compare::kMasked, bits, bits};
}

CallRule ask(std::string_view call, std::vector<ArgumentTest> tests) {
  return {{call}, kAskListener, std::move(tests)};
}

// Refused for what they are, or for the namespaces that they ask for; not for an option.
bool is_watched(const CallRule& rule) {
  if (rule.error != EPERM) return false;
  return rule.rest ? rule.names[0] == "clone" || rule.names[0] == "unshare" : rule.tests.empty();
}

// Reads cost nothing: only what may write is asked about.  Times that come without a path are those
// of a file that was opened to write it.
void add_files(std::vector<CallRule>& out) {
  for (const auto& [call, flags] : {std::pair{"open", 1U}, std::pair{"openat", 2U}})
    for (const std::uint32_t bits : {O_WRONLY, O_RDWR, O_TRUNC})
      out.push_back(ask(call, {has(flags, bits)}));  // flock(1) creates what it only reads
  out.push_back({{"utimensat"}, 0, {{1, Compare::kEqual, 0}}});
  out.push_back(plain(
      "openat2 creat unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat chmod "
      "fchmodat fchmodat2 chown lchown fchownat truncate mkdir mkdirat rmdir mknod mknodat "
      "setxattr lsetxattr removexattr lremovexattr utime utimes futimesat utimensat",
      kAskListener));
}

// Asked by a child, for it listens to itself for good.  The last flag came (5.7) after the word
// that lets a call go on (5.5), which nothing else tells.
bool kernel_lets_listen() {
  constexpr unsigned long kFlags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
                                   SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program = {1, &allow};
    const bool works = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       0 <= ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program);
    ::_exit(works ? 0 : 1);
  }
  int status = -1;
  return 0 < child && ::waitpid(child, &status, 0) == child && status == 0;
}

std::optional<std::string> from_hex(std::string_view digits) {
  std::string out;
  for (; 1 < digits.size(); digits.remove_prefix(2)) {
    const auto byte = whole_number<unsigned>(digits.substr(0, 2), 16);
    if (!byte) return std::nullopt;
    out.push_back(static_cast<char>(*byte));
  }
  return out;
}

std::string address_text(std::string_view bytes) {
  sockaddr_in6 address{};
  std::memcpy(&address, bytes.data(), std::min(bytes.size(), sizeof address));
  IpAddress to{std::to_array(address.sin6_addr.s6_addr)};
  if (address.sin6_family == AF_INET)  // the flow's place is the address's then
    to = ip_from_v4(std::bit_cast<std::array<std::uint8_t, 4>>(address.sin6_flowinfo));
  const std::string host = to.is_v4() ? to_string(to) : "[" + to_string(to) + "]";
  return host + ":" + std::to_string(ntohs(address.sin6_port));
}

std::string_view last_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The words that it was given; a first one that is not the program's name is that program's path.
std::string program_words(std::string_view bytes) {
  const std::string_view path = take_until(bytes, '\0');
  const std::string_view first = bytes.substr(0, bytes.find('\0'));
  if (path.empty() || last_of(first) == last_of(path)) return std::string(bytes);
  return std::string(path).append(bytes.substr(first.size()));
}

// The name of a call of the host's own kind; "call N" if libseccomp has none for it.
std::string call_name(int number) {
  const Owned<char, std::free> name(
      seccomp_syscall_resolve_num_arch(seccomp_arch_native(), number));
  return name ? name.get() : "call " + std::to_string(number);
}

CallAttempt::What what_of(int number, std::string_view call) {
  using enum CallAttempt::What;
  const auto* const look = std::ranges::find(kCallLooks, number, &CallLook::number);
  if (look == std::end(kCallLooks))
    return std::ranges::count(plain(kRefused, EPERM).names, call) == 0 ? kEscape : kHarmless;
  if (look->what == CallLook::kAlways) return kEscape;
  if (look->what == CallLook::kProgram) return kProgram;
  return look->what < CallLook::kPath ? kAddress : kFile;
}
}  // namespace

std::vector<CallRule> watch_rules(bool network, bool programs) {
  std::vector<CallRule> out;
  for (const CallRule& rule : call_rules())
    if (is_watched(rule)) out.push_back({rule.names, kAskListener, rule.tests, rule.rest});
  for (const std::uint32_t request : {PTRACE_ATTACH, PTRACE_SEIZE})
    out.push_back(ask("ptrace", {is(0, request), is(1, 1)}));
  if (!network) {
    out.push_back({{"sendto"}, 0, {{4, Compare::kEqual, 0}}});  // it names no address
    out.push_back(plain("connect bind sendto sendmsg sendmmsg", kAskListener));
  }
  if (programs) out.push_back(plain("execve execveat", kAskListener));
  add_files(out);
  return out;
}

Result<CallWatch> CallWatch::make(Programs whose) {
  if (!kernel_lets_listen())
    return Error{Errc::kUnavailable, "seccomp: this kernel lets no process listen to another here"};
  PROCTOR_TRY(const std::string ours, make_seccomp_program(whose));
  CallWatch out;
  for (std::size_t i = 0; i < out.given_.size(); ++i) {
    PROCTOR_TRY(const std::string theirs,
                make_seccomp_program(whose, watch_rules((i & 1) != 0, (i & 2) != 0)));
    out.given_[i] = for_first_process(theirs) + for_first_process(ours);
  }
  return out;
}

const std::string& CallWatch::given(const SandboxSpec& spec, const ExecSpec& exec) const {
  return given_[(spec.network ? 1U : 0U) + (exec.see_programs ? 2U : 0U)];
}

std::optional<CallAttempt> parse_attempt(std::string_view line) {
  int number = 0;
  CallAttempt out;
  if (!take_word(line, "attempt ") || !take_number(line, number) || !take_word(line, " ") ||
      !take_number(line, out.pid) || !take_word(line, " "))
    return std::nullopt;
  out.call = call_name(number);
  out.what = what_of(number, out.call);
  // A device, at no path of the host: tests of archives make them.
  if (line == "-" && out.what == CallAttempt::What::kFile) out.what = CallAttempt::What::kHarmless;
  if (line == "?") out.target = line;
  if (line == "?" || line == "-") return out;
  const auto bytes = from_hex(line);
  if (!bytes) return std::nullopt;
  using enum CallAttempt::What;
  out.target = out.what == kProgram   ? program_words(*bytes)
               : out.what == kAddress ? address_text(*bytes)
                                      : printable(*bytes, kPathBytes);
  return out;
}
}  // namespace proctor
