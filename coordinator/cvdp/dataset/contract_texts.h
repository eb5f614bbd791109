#pragma once
// Texts of a contract that is made of a problem: a service's command as a shell script for the
// contract's own sandbox, and a file's change as git would write it.  Pure.
#include <string>

#include "coordinator/cvdp/dataset/compose.h"

namespace proctor::cvdp {

// Paths of the container become those of the workspace, from which the script is started.
std::string script_of(const ServicePlan& plan, const EnvPairs& environment);

// A whole file against another, every line replaced.  `before`: null where there was none.
std::string git_diff(const std::string& path, const std::string* before, const std::string& after);

}  // namespace proctor::cvdp
