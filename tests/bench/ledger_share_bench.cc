// ledger.share: the part of a zero-work run's time that money costs, which is the processor time of
// coordinator and Redis that is saved when every ask is granted without asking: 1 - free / real.
// ledger.elapsed_share: the same of the time from the first durable intent to the last durable
// settlement at full throughput, which the ledger's thread and Redis share with the rest.
// The medians of rounds of both in turn.  `ledger_share_bench [RUNS [ROUNDS [DIR]]]`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/base/log.h"
#include "tests/bench/dispatch_bench_run.h"

using namespace proctor;

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint32_t otherwise) {
    return i < argc ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  bench::DispatchSettings settings;
  settings.runs = number(1, 30'000);
  const std::uint32_t rounds = std::max(1U, number(2, 5));
  if (3 < argc) settings.dir = argv[3];
  log::init("bench", log::Level::kError);
  std::vector<double> cpu, elapsed;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    settings.free_money = false;
    const bench::DispatchOutcome real = bench::dispatch(settings);
    settings.free_money = true;
    const bench::DispatchOutcome free = bench::dispatch(settings);
    cpu.push_back(1 - free.cpu_s / real.cpu_s);
    elapsed.push_back(1 - free.seconds / real.seconds);
    std::printf("  processor time a run: %.1f us with Redis, %.1f us with free money\n",
                1e6 * real.cpu_s / real.runs, 1e6 * free.cpu_s / free.runs);
  }
  std::printf(
      "ledger.share is the part of a zero-work run's processor time, of coordinator and Redis, "
      "that is saved when every ask is granted without asking\n");
  std::printf("figure ledger.share %.3f of 1\n", median(cpu));
  std::printf("figure ledger.elapsed_share %.3f of 1\n", median(elapsed));
  return 0;
}
