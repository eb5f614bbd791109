// The table of system calls, and that the filter, the engine's profile and the published file all
// say what it says, of every call and of arguments on both sides of each rule.
#include "worker/sandbox/seccomp_filter.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <map>
#include <set>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "tests/support/paths.h"
#include "tests/unit/sandbox/bpf_machine.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

using Compare = ArgumentTest::Compare;
constexpr std::uint64_t kBeyond32 = std::uint64_t{1} << 32;  // the kernel may not look at it
constexpr int kMostCalls = 700;                              // more than any table has

bool holds(const ArgumentTest& test, std::uint64_t argument) {
  switch (test.compare) {
    case Compare::kEqual:
      return argument == test.value;
    case Compare::kMasked:
      return (argument & test.mask) == test.value;
  }
  return false;
}

bool holds(const CallRule& rule, const seccomp_data& call) {
  for (const ArgumentTest& test : rule.tests)
    if (!holds(test, call.args[test.index])) return false;
  return true;
}

// By number, as the table says it.
using Table = std::map<int, std::vector<const CallRule*>>;
Table table_of(std::uint32_t machine) {
  Table out;
  for (const CallRule& rule : call_rules())
    for (const std::string_view name : rule.names)
      if (const int number = call_number(machine, name); 0 <= number) out[number].push_back(&rule);
  return out;
}

int answer_of(const Table& table, const seccomp_data& call) {
  const auto rules = table.find(call.nr);
  if (rules == table.end()) return kOtherCalls;
  int answer = kOtherCalls, count = 0;
  for (const CallRule* rule : rules->second) {
    const bool leaves_all = rule->rest && rule->tests.empty();
    if (leaves_all && count == 0) answer = rule->error;
    if (leaves_all || !holds(*rule, call)) continue;
    answer = rule->error;
    ++count;
  }
  CHECK(count <= 1);  // no two of them
  return answer;
}

// By a rule that looks at nothing else?
bool named(const Table& table, const seccomp_data& call) {
  const auto rules = table.find(call.nr);
  return rules != table.end() && rules->second.front()->tests.empty();
}

// Each value that any rule names, its neighbours, and what the kernel would not look at.
std::vector<std::uint64_t> telling_values() {
  std::set<std::uint64_t> out = {0, 1, ~std::uint64_t{0}};
  for (const CallRule& rule : call_rules())
    for (const ArgumentTest& test : rule.tests)
      for (const std::uint64_t value : {test.value, test.mask, test.value | test.mask})
        for (const std::uint64_t near : {value, value + 1, value - 1, value | kBeyond32})
          out.insert(near);
  return {out.begin(), out.end()};
}

// Every call, and those that are looked into with every pair of telling values.
void for_each_call(std::uint32_t machine, const Table& table,
                   const std::function<void(const seccomp_data&)>& with) {
  const std::vector<std::uint64_t> values = telling_values();
  seccomp_data call{};
  call.arch = machine;
  for (call.nr = 0; call.nr < kMostCalls; ++call.nr) {
    std::fill(std::begin(call.args), std::end(call.args), 0);
    with(call);
    const auto rules = table.find(call.nr);
    if (rules == table.end() || rules->second.front()->tests.empty()) continue;
    const unsigned index = rules->second.front()->tests.front().index;
    const bool narrow = machine == AUDIT_ARCH_I386;  // the kernel gives no upper halves then
    for (const std::uint64_t value : values) {
      if (narrow && kBeyond32 <= value) continue;
      call.args[index] = value;
      for (const std::uint64_t other : {std::uint64_t{0}, std::uint64_t{1}, kBeyond32}) {
        if (index == 0 && !(narrow && other == kBeyond32)) call.args[2] = other;
        with(call);
      }
    }
  }
}

// `one_refusal`: whatever is refused, and what the table does not name, is so by one word.
void check_all(const BpfMachine& filter, std::uint32_t machine, bool one_refusal = false) {
  const Table table = table_of(machine);
  for_each_call(machine, table, [&](const seccomp_data& call) {
    const int answer = filter.answer(call);
    int wanted = answer_of(table, call);
    if (one_refusal && wanted != 0 && (wanted != ENOSYS || !named(table, call))) wanted = EPERM;
    if (answer == wanted) return;
    CAPTURE(call.nr);
    CAPTURE(call.args[0]);
    CAPTURE(call.args[1]);
    CAPTURE(call.args[2]);
    CHECK(answer == wanted);
  });
}

// As runc makes a filter of the profile.
std::string program_of(const Json& profile, std::uint32_t also) {
  REQUIRE(profile["defaultAction"] == "SCMP_ACT_ERRNO");
  const Owned<void, seccomp_release> ctx(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  REQUIRE(ctx);
  if (also != 0) REQUIRE(seccomp_arch_add(ctx.get(), also) == 0);
  const std::map<std::string, scmp_compare> words = {{"SCMP_CMP_EQ", SCMP_CMP_EQ},
                                                     {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}};
  for (const Json& rule : profile["syscalls"]) {
    const auto action = rule["action"] == "SCMP_ACT_ALLOW"
                            ? SCMP_ACT_ALLOW
                            : SCMP_ACT_ERRNO(rule["errnoRet"].get<std::uint16_t>());
    std::vector<scmp_arg_cmp> tests;
    for (const Json& a : rule.value("args", Json::array()))
      tests.push_back({a["index"].get<unsigned>(), words.at(a["op"].string()),
                       a["value"].get<std::uint64_t>(), a.value("valueTwo", std::uint64_t{0})});
    for (const Json& name : rule["names"]) {
      const int call = seccomp_syscall_resolve_name(name.get<std::string>().c_str());
      if (call == __NR_SCMP_ERROR) continue;
      CAPTURE(name);
      CHECK(seccomp_rule_add_array(ctx.get(), action, call, static_cast<unsigned>(tests.size()),
                                   tests.data()) == 0);
    }
  }
  const UniqueFd fd(::memfd_create("profile", MFD_CLOEXEC));
  REQUIRE(seccomp_export_bpf(ctx.get(), fd.get()) == 0);
  std::string program(static_cast<std::size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  REQUIRE(::pread(fd.get(), program.data(), program.size(), 0) ==
          static_cast<ssize_t>(program.size()));
  return program;
}

bool on_x86_64() {
  return seccomp_arch_native() == SCMP_ARCH_X86_64;
}

}  // namespace

TEST_SUITE("seccomp") {
  TEST_CASE("a call is in one list of the table, and has one answer for each of its arguments") {
    std::map<std::string_view, int> plain, tested;
    for (const CallRule& rule : call_rules())
      for (const std::string_view name : rule.names)
        ++(rule.tests.empty() && !rule.rest ? plain : tested)[name];
    for (const auto& [name, count] : plain) {
      CAPTURE(name);
      CHECK(count == 1);
      CHECK_FALSE(tested.contains(name));
    }
    for (const char* name : {"clone", "fcntl", "fcntl64", "ioctl", "personality", "setpriority",
                             "setsockopt", "socket", "socketpair", "unshare"})
      CHECK(tested.contains(name));
    CHECK(tested.size() == 10);
  }

  TEST_CASE("the filter says of every call what the table says, of both kinds of program") {
    const auto native = make_seccomp_program(Programs::kNative);
    const auto both = make_seccomp_program(Programs::kAlso32Bits);
    REQUIRE(native.ok());
    REQUIRE(both.ok());
    const std::uint32_t machine = seccomp_arch_native();
    check_all(BpfMachine(*native), machine);
    check_all(BpfMachine(*both), machine);
    CHECK(BpfMachine(*native).size() < 400);  // each sandbox begins with loading it
    if (!on_x86_64()) return;
    check_all(BpfMachine(*both), SCMP_ARCH_X86);
    // Programs of another kind are answered nothing: by i386's number 1 they would end.
    for (const std::uint32_t other :
         {std::uint32_t{AUDIT_ARCH_I386}, std::uint32_t{AUDIT_ARCH_AARCH64}}) {
      seccomp_data call{};
      call.arch = other;
      for (call.nr = 0; call.nr < kMostCalls; ++call.nr)
        CHECK(BpfMachine(*native).answer(call) == ENOSYS);
    }
    // x32: the same machine by its name, calls by numbers of its own.
    seccomp_data call{};
    call.arch = machine;
    for (int nr = 0; nr < kMostCalls; ++nr) {
      call.nr = static_cast<int>(0x4000'0000U | static_cast<unsigned>(nr));
      CHECK(BpfMachine(*native).answer(call) == ENOSYS);
      CHECK(BpfMachine(*both).answer(call) == ENOSYS);
    }
  }

  TEST_CASE("a container engine makes the same of the profile, of both kinds of program") {
    const std::uint32_t also = on_x86_64() ? SCMP_ARCH_X86 : 0;
    const BpfMachine filter(program_of(seccomp_profile(), also));
    check_all(filter, seccomp_arch_native(), true);
    if (!on_x86_64()) return;
    check_all(filter, SCMP_ARCH_X86, true);
    // The calls of 32 bits that carry others: their arguments lie behind a pointer.
    seccomp_data call{};
    call.arch = SCMP_ARCH_X86;
    call.nr = 102;  // socketcall
    for (call.args[0] = 0; call.args[0] < 30; ++call.args[0]) CHECK(filter.answer(call) == ENOSYS);
  }

  TEST_CASE("what is published of the profile is the profile") {
    const auto published = read_file(testing::source_dir() / "ops/seccomp.json", 1 << 20);
    REQUIRE(published.ok());
    // `proctor-worker seccomp-profile > ops/seccomp.json` writes it.
    CHECK(*published == seccomp_profile().dump(2) + "\n");
  }

  TEST_CASE("what a forbidden call is answered lets libraries fall back") {
    const auto program = make_seccomp_program(Programs::kNative);
    REQUIRE(program.ok());
    const BpfMachine filter(*program);
    const auto answer = [&](long number, std::uint64_t a = 0, std::uint64_t b = 0,
                            std::uint64_t c = 0) {
      seccomp_data call{};
      call.arch = seccomp_arch_native();
      call.nr = static_cast<int>(number);
      call.args[0] = a;
      call.args[1] = b;
      call.args[2] = c;
      return filter.answer(call);
    };
    CHECK(answer(SYS_clone3) == ENOSYS);
    CHECK(answer(SYS_io_uring_setup) == ENOSYS);
    CHECK(answer(699) == ENOSYS);  // of a kernel that is still to come
    for (const long number : {SYS_keyctl, SYS_add_key, SYS_request_key, SYS_mount, SYS_bpf,
                              SYS_perf_event_open, SYS_setns, SYS_userfaultfd})
      CHECK(answer(number) == EPERM);
    CHECK(answer(SYS_clone, CLONE_VM | CLONE_FS | CLONE_THREAD | CLONE_SIGHAND) == 0);
    CHECK(answer(SYS_clone, CLONE_NEWUSER | SIGCHLD) == EPERM);
    CHECK(answer(SYS_unshare, CLONE_FILES) == 0);
    // Whoever opens the file would wait for its holder, outside too.
    CHECK(answer(SYS_fcntl, 3, F_SETLEASE, F_WRLCK) == EPERM);
    CHECK(answer(SYS_fcntl, 3, F_NOTIFY) == EPERM);
    for (const std::uint64_t command :
         {F_GETLEASE, F_SETFL, F_SETLKW, F_SETPIPE_SZ, F_DUPFD_CLOEXEC})
      CHECK(answer(SYS_fcntl, 3, command) == 0);
    // Machine code in a room of the whole machine.
    for (const std::uint64_t option : {SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF})
      CHECK(answer(SYS_setsockopt, 3, SOL_SOCKET, option) == EPERM);
    CHECK(answer(SYS_setsockopt, 3, SOL_SOCKET, SO_RCVBUF) == 0);
    CHECK(answer(SYS_setsockopt, 3, 6, SO_ATTACH_FILTER) == 0);  // of TCP another option
    CHECK(answer(SYS_unshare, CLONE_NEWNS | CLONE_NEWUSER) == EPERM);
    CHECK(answer(SYS_unshare, 0x80) == EPERM);  // CLONE_NEWTIME
    CHECK(answer(SYS_ioctl, 0, TIOCSTI) == EPERM);
    CHECK(answer(SYS_ioctl, 0, TIOCSTI | kBeyond32) == EPERM);
    CHECK(answer(SYS_ioctl, 0, TIOCGWINSZ) == 0);
    CHECK(answer(SYS_socket, AF_INET) == 0);
    CHECK(answer(SYS_socket, AF_VSOCK) == EAFNOSUPPORT);
    CHECK(answer(SYS_socket, AF_NETLINK, 0, 16) == EAFNOSUPPORT);  // NETLINK_GENERIC
    for (const long number : {SYS_ptrace, SYS_futex, SYS_rseq, SYS_pkey_alloc, SYS_execve, SYS_mmap,
                              SYS_mprotect, SYS_landlock_create_ruleset, SYS_seccomp})
      CHECK(answer(number) == 0);
  }
}
