#pragma once
// The Docker engine: every run() is one container, made, attached, started, awaited and removed
// through the Engine API on its unix socket (v1.41 and later), never the command line.
//
// Inside: no network, no capabilities, no new privileges, a read-only root with private tmpfs, and
// uid 0.  Root, because a workspace is an overlay whose files belong to the host's root, and
// without capabilities it is no more than their owner; changing the owner of every file instead
// would copy the whole tree up.
//
// Everything made carries the labels proctor.owner and proctor.attempt; nothing without them is
// ever touched.  Thread-safe; each sandbox has its own connection.
// Fails with kUnavailable (engine gone, hung, too old), kNotFound (no such image, volume or mount
// here), kInvalid (the spec).
// Source: Docker Engine API v1.41.
#include <memory>

#include "worker/sandbox/sandbox.h"

namespace proctor {
Result<std::unique_ptr<SandboxEngine>> open_docker_engine(const SandboxOptions& options);

// Removes what dead processes of ours kept on this host for theirs; no engine is asked.
void remove_stale_docker_folders();
}  // namespace proctor
