#pragma once
// The system calls of sandboxed commands: the table of rules, and the filter and the profile made
// from it.  Pure apart from libseccomp's names of calls; thread-safe.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

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

// The answer to these calls where all tests hold.  No two rules of one call hold for the same
// arguments, so that it does not matter in which order a runtime reads them.
struct CallRule {
  std::vector<std::string_view> names;
  int error = 0;  // 0: the kernel is asked
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

// The program as the bytes of `struct sock_filter[]`.
Result<std::string> make_seccomp_program(Programs whose);

// For the engine's `seccomp=`, on machines of any kind.  There is one answer to all that it does
// not name, EPERM, which is also that of what the table refuses in other words.
Json seccomp_profile();
}  // namespace proctor
