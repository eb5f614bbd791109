#pragma once
// The null sandbox: runs nothing and says it exited with 0.  For benchmarks of everything else;
// never chosen by itself.  Thread-safe.  Fails only when the output files cannot be made.
#include <memory>

#include "worker/sandbox/sandbox.h"

namespace proctor {

std::unique_ptr<SandboxEngine> open_null_engine();

}  // namespace proctor
