#pragma once
// The rules of call_rules.h as a kernel reads them (a BPF program, for bwrap's --seccomp and for
// the first process of OCI containers) and as the Docker Engine and people do (its profile, which
// is published as ops/seccomp.json).
// Pure apart from libseccomp's names of calls; thread-safe.  Fails with kUnavailable: a processor
// whose calls libseccomp does not know.  Source: seccomp(2), bpf's instructions in
// Documentation/networking/filter.rst, profiles/seccomp of the Docker Engine 20.10.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {

// Whose calls are answered by the rules; those of other kinds of program are "not there".
enum class Programs {
  kNative,      // of the host's own kind
  kAlso32Bits,  // and of the kind of 32 bits that runs on it too: i386 on x86-64
};

// Of a machine by its AUDIT_ARCH number; negative: it has no such call.
int call_number(std::uint32_t machine, std::string_view name);

// The program as the bytes of `struct sock_filter[]`.
Result<std::string> make_seccomp_program(Programs whose);

// For the engine's `seccomp=`, on machines of any kind.  There is one answer to all that it does
// not name, EPERM, which is also that of what the table refuses in other words.
Json seccomp_profile();

}  // namespace proctor
