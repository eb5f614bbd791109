#pragma once
// `proctor ARGS` of the tests in this folder.
#include "tests/support/programs.h"

using proctor::testing::contains;
using proctor::testing::must;

inline proctor::CommandOutcome run_proctor(
    std::vector<std::string> args, std::chrono::milliseconds timeout = std::chrono::seconds(300)) {
  return proctor::testing::proctor(std::move(args), timeout);
}
