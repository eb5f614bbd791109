#pragma once
// How an exit code as shells and container engines report it becomes an outcome.  Pure.
#include "worker/sandbox/sandbox.h"

namespace proctor {

// 128 + n after signal n, for the signals by which programs really die; kExited otherwise (git
// exits with 129 when misused).  `exit_code` keeps the number as reported in either case.
void set_exit(ExecOutcome& out, int code);

}  // namespace proctor
