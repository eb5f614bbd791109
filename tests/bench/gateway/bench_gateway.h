#pragma once
// The gateway of a bench, as a worker has it: a session with a meter, its book on a disk, the trace
// of the run and what was said.  Runs in the process that calls it, until its line ends.
#include <cstdint>
#include <string>

#include "tests/bench/gateway/bench_child.h"

namespace proctor::bench {

inline constexpr const char* kBenchToken = "prk1_bench";

// Says its socket.  Answers "used" with "CPU-MICROSECONDS RESIDENT-BYTES", "end" with
// "SETTLED-CALLS CHARGED-MICROS": no call is under way then, and the trace is on disk.
void be_gateway(const Line& line, std::uint16_t provider_port);
// Says the bytes of resident memory that each of `sessions` idle ones takes, with its meter.
void be_idle(const Line& line, std::size_t sessions);

}  // namespace proctor::bench
