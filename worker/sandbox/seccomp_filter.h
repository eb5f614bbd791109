#pragma once
// The system calls a sandboxed command does not get: a BPF program for bwrap's --seccomp, and the
// same rules as the section of an OCI runtime's config.json.
// Pure apart from libseccomp; thread-safe.  Fails with kUnavailable (libseccomp refuses).
// Source: seccomp(2), libseccomp's manual pages, OCI runtime-spec 1.0.2.
#include <string>

#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {

// The program as the bytes of `struct sock_filter[]`.
Result<std::string> make_seccomp_program();

// linux.seccomp.
Json oci_seccomp();

}  // namespace proctor
