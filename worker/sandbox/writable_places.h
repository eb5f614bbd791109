#pragma once
// Folders that a command may write to, and close: their own mode is as much its to change as what
// lies in them.  A closed one keeps the next command from starting, or the worker from reading what
// was left, and neither is the host's fault; so both begin by opening them again.
// Blocking; thread-safe.
// Fails with errno_error.
#include "worker/sandbox/sandbox.h"

namespace proctor {

// Gives the owner of this folder all rights on it.  By descriptor: what is no folder, or a link, is
// left as it is, and so is what belongs to somebody else.
Status open_to_owner(const fs::path& folder);

// The same of the workspace and of every folder that is mounted to be written to.
Status open_writable_places(const SandboxSpec& spec);

}  // namespace proctor
