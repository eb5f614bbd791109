#pragma once
// The simulator image of ops/images/cvdp-sim, and problems that are run in it.
#include <string>

#include "tests/integration/cvdp/sim_scene.h"

namespace proctor::testing {

inline constexpr const char* kSim = "proctor-cvdp-sim";

// Unpacking takes seconds: one store for all tests of this machine.
fs::path test_store();
// The image where `runner` finds it, built when it is nowhere.  False: `test` has been named as not
// run, with the reason.
bool have_image(ImagesOf::Runner runner, const char* test);
// A toggle flip-flop of our own with a cocotb test.
std::string toggle_problem();
// The example with solutions, and the one whose solution is ours.  Requires: have_shared_data().
std::string example_problems();

}  // namespace proctor::testing
