#pragma once
// The system calls a sandboxed command does not get: a BPF program for bwrap's --seccomp.
// Pure apart from libseccomp; thread-safe.  Fails with kUnavailable (libseccomp refuses).
// Source: seccomp(2), libseccomp's manual pages.
#include <string>

#include "common/base/result.h"

namespace proctor {

// The program as the bytes of `struct sock_filter[]`.
Result<std::string> make_seccomp_program();

}  // namespace proctor
