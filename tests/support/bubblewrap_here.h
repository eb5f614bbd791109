#pragma once
// Whether bubblewrap itself can make a sandbox here: where it can and Proctor cannot, Proctor is
// broken, and a test that says "not run" would hide it.
#include <doctest/doctest.h>

#include "common/base/subprocess.h"

namespace proctor::testing {

inline bool bubblewrap_is_here() {
  CommandSpec spec;
  spec.argv = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "true"};
  return run_for_output(spec).ok();
}

// Says that the test is not run, and why; fails where this machine is not what is amiss.
inline void not_run_without_bubblewrap(const std::string& why) {
  CHECK_MESSAGE(!bubblewrap_is_here(), "bwrap makes a sandbox here, and Proctor does not: " << why);
  MESSAGE("not run: no bubblewrap sandbox on this machine: " << why);
}

}  // namespace proctor::testing
