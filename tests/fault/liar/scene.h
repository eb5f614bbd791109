#pragma once
// One seed: a campaign from its first message to its end, with a coordinator that is killed now and
// then, two honest workers, and one that lies.
#include <string>
#include <vector>

#include "tests/fault/liar/lies.h"

namespace proctor::liar {

struct Options {
  fs::path parent;             // where campaigns are played
  bool keep = false;           // leave them there
  std::optional<Lie> without;  // a lie that is not told
};
struct Outcome {
  std::vector<std::string> violations;
  std::int64_t cpu_ms = 0;  // of the coordinator
  double lag_p99_ms = 0, lag_max_ms = 0;
  std::uint64_t incoming_files = 0, incoming_bytes = 0;  // at most, at once
  std::uint64_t restarts = 0, honest_attempts = 0;
};
// An error is this machine's, not the coordinator's.
Result<Outcome> play(std::uint64_t seed, const Options& options, Counters& counters);

}  // namespace proctor::liar
