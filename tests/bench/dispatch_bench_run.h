#pragma once
// One campaign of zero-work runs through the whole coordinator against the simulated workers of
// dispatch_bench_workers.h.  Ends the program with a message when anything is not as it must be:
// every run has an outcome and is settled, Redis holds nothing reserved and the same sum as the
// journal, commits were made, and the workers' process lived to the end.
#include <cstdint>
#include <filesystem>

namespace proctor::bench {

struct DispatchSettings {
  std::uint32_t runs = 100'000;
  std::uint32_t slots = 256;  // of each of four workers
  bool curve = false;         // CURVE over TCP loopback, else ipc
  bool free_money = false;    // every ask is granted and nobody is asked: no Redis
  bool threads = false;       // print the processor time of each thread
  std::filesystem::path dir;  // on a disk; empty: the temporary folder
};

// The clock is the journal's: from the first durable intent to the last durable settlement, so what
// was not written does not count.
struct DispatchOutcome {
  double seconds = 0;
  double cpu_s = 0;  // processor time of the coordinator while it ran, and of Redis
  std::uint32_t runs = 0;
};
DispatchOutcome dispatch(const DispatchSettings& settings);

}  // namespace proctor::bench
