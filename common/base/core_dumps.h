#pragma once
// A core file is a copy of the memory of a process, made where nobody thought of its mode.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace proctor {

// For programs that hold keys, passwords and the declared secrets of contracts: neither they nor
// what they start leaves one.  A kernel that pipes cores to a program does so whatever the limit
// is, but not of a process that cannot be traced.  One without root stays traceable, to its own
// user alone: it could not write the maps of its user namespaces.
// Before any thread.  Source: core(5), PR_SET_DUMPABLE in prctl(2).
inline void forbid_core_dumps() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  if (::geteuid() == 0) (void)::prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace proctor
