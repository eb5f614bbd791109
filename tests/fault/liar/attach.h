#pragma once
// The liar alone, at a coordinator that somebody else started: nothing is known of other workers.
#include "tests/fault/liar/lies.h"

namespace proctor::liar {

struct Attached {
  std::string endpoint;
  fs::path server_key, key;  // files
  fs::path campaign;         // its folder, for the plan
  fs::path scratch;
  std::uint64_t seed = 1, lies = 300;
};
// Lies, lets go of what it was given, and stays until the coordinator has been gone for a while.
// What it told, by kind.
Result<Counters> lie_to(const Attached& to);

}  // namespace proctor::liar
