#pragma once
// What a spec may ask for, the same in every kind of sandbox.  Fails with kInvalid, naming the
// mount or variable; looks at the host only for whether mounted paths are there.
#include "worker/sandbox/sandbox.h"

namespace proctor {

Status check_mounts(const std::vector<SandboxMount>& mounts);
Status check_environment(const std::map<std::string, std::string>& env);

}  // namespace proctor
