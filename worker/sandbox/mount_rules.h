#pragma once
// What a spec may ask for, the same in every kind of sandbox.  Looks at the host only for whether
// mounted paths are there.  Fails, naming the mount or variable, with kInvalid (the spec),
// kNotFound (this host has no such path).
#include "worker/sandbox/sandbox.h"

namespace proctor {

Status check_mounts(const std::vector<SandboxMount>& mounts);
Status check_environment(const std::map<std::string, std::string>& env);

// Each place before those that lie in it, whatever the order they were asked for in: what is
// mounted over an outer place later would hide the inner one.
std::vector<SandboxMount> outer_first(std::vector<SandboxMount> mounts);

// The words that tell init (init/main.cc) where the command may write: those places of the kind's
// own, the workspace, and what is mounted for that.
std::vector<std::string> write_words(const SandboxSpec& spec, std::vector<std::string> kinds_own);

}  // namespace proctor
