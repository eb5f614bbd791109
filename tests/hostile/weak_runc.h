#pragma once
// Containers that are weakened: whoever writes config.json, runc reads another.
#include "tests/hostile/weak.h"

namespace proctor::testing {

std::string weak_runc_script();
std::vector<Weakness> weak_configurations();

}  // namespace proctor::testing
