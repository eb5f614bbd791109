#pragma once
// The bubblewrap engine: every run() is one `bwrap` in fresh namespaces, unprivileged inside,
// under a seccomp filter, control groups where they can be had and resource limits where not.
// Owns the folder that is every sandbox's /etc, and the owner's control groups.
// Thread-safe.  Fails with kUnavailable (no bwrap, no user namespaces), kInvalid (the spec),
// kNotFound (no such mount here).
#include <memory>

#include "worker/sandbox/sandbox.h"

namespace proctor {

// An empty command has worked in it.
Result<std::unique_ptr<SandboxEngine>> open_bubblewrap_engine(const SandboxOptions& options);
// None has: for who runs something in it before all else anyway, and opens it the other way where
// that fails.
Result<std::unique_ptr<SandboxEngine>> open_untried_bubblewrap_engine(
    const SandboxOptions& options);

}  // namespace proctor
