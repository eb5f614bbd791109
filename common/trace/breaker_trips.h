#pragma once
// Which circuit breakers tripped in a run, as its trace tells it.  Adapter (reads files); any
// thread.  Errors: of read_file(); kCorrupt, a chain that is broken.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

struct TracedTrip {
  std::uint64_t seq = 0;  // of the intervention
  std::string code, action, why;
};
Result<std::vector<TracedTrip>> read_breaker_trips(const fs::path& run_dir);

}  // namespace proctor
