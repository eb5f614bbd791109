#pragma once
// The system calls of sandboxed commands: the table of rules, the filter and the profile made from
// it, and the watching of those that are attempted.  Pure apart from libseccomp's names of calls
// and CallWatch::make(); thread-safe.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Which system calls a sandboxed command gets: the one table from which the filter of bubblewrap
// and of OCI containers and the profile of the Docker Engine are made.  A call that it does not
// name is "not there" (ENOSYS): libraries then do without, as on an older kernel.
// Source: syscalls(2) of Linux 6.12; socket(2), clone(2), personality(2).

// A test of one argument, all 64 bits of it.
struct ArgumentTest {
  enum class Compare { kEqual, kMasked };
  unsigned index;
  Compare compare;
  std::uint64_t value;
  std::uint64_t mask = 0;  // kMasked: argument & mask == value, of its lower 32 bits
};

// CallRule::error of calls about which a sandbox's first process is asked (CallWatch).
inline constexpr int kAskListener = -1;

// The answer to these calls where all tests hold.  No two rules of one call hold for the same
// arguments, so that it does not matter in which order a runtime reads them.
struct CallRule {
  std::vector<std::string_view> names;
  int error = 0;  // 0: the kernel is asked; kAskListener: who watches the program is
  std::vector<ArgumentTest> tests{};
  // It and its like are what the other rules of these calls leave, and answer the same: whoever
  // reads rules in turn needs no more than one of them, without its tests.  Where that is an error
  // there is but one, and it has none.
  bool rest = false;
};
const std::vector<CallRule>& call_rules();

// The answer to a call that no rule speaks of.
extern const int kOtherCalls;

// The rules of call_rules() as a kernel reads them (a BPF program, for bwrap's --seccomp and for
// the first process of OCI containers) and as the Docker Engine and people do (its profile, which
// is published as ops/seccomp.json).  Fails with kUnavailable: a processor whose calls libseccomp
// does not know.
// Source: seccomp(2), bpf's instructions in Documentation/networking/filter.rst, profiles/seccomp
// of the Docker Engine 20.10.

// Whose calls are answered by the rules; those of other kinds of program are "not there".
enum class Programs {
  kNative,      // of the host's own kind
  kAlso32Bits,  // and of the kind of 32 bits that runs on it too: i386 on x86-64
};

// The number of a call on a machine, which has this AUDIT_ARCH number; negative: it has no such
// call.
int call_number(std::uint32_t machine, std::string_view name);

// The program as the bytes of `struct sock_filter[]`.  `first`: rules that go before those of
// call_rules(), for calls of the host's own kind; the first that holds, in their order, answers.
Result<std::string> make_seccomp_program(Programs whose, const std::vector<CallRule>& first = {});

// For the engine's `seccomp=`, on machines of any kind.  There is one answer to all that it does
// not name, EPERM, which is also that of what the table refuses in other words.
Json seccomp_profile();

// Watching the calls of commands (ExecSpec::attempted): filters that make the kernel ask a
// sandbox's first process about some calls, and the reading of what that process tells
// (init/attempts.h). Source: seccomp_unotify(2); seccomp(2) on SECCOMP_FILTER_FLAG_NEW_LISTENER.
class CallWatch {
 public:
  // kUnavailable: this kernel lets no process listen, or a process around this one listens already,
  // or libseccomp does not know this processor.
  static Result<CallWatch> make(Programs whose);
  // The bytes that init reads when it has the words below, for one command: the filter of the
  // command, which allows what make_seccomp_program() allows, and that program for init itself.
  const std::string& given(const SandboxSpec& spec, const ExecSpec& exec) const;
  // Init tells on this descriptor.
  static std::vector<std::string> words(int status) { return {"--watch", std::to_string(status)}; }

 private:
  std::array<std::string, 4> given_;  // by network, and by see_programs
};

// The rules of those filters before all others.  `network`: addresses are not looked at.
std::vector<CallRule> watch_rules(bool network, bool programs);

// One line of init's, without its end.  None: it is no attempt.  Pure.
std::optional<CallAttempt> parse_attempt(std::string_view line);
}  // namespace proctor
