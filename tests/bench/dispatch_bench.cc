// Zero-work runs per second through the whole coordinator: scheduler, ROUTER socket, Redis reserve
// and settle, journal with synchronous=FULL; four simulated workers in one other process.  Once
// over ipc, once with CURVE over TCP loopback.  `dispatch_bench [RUNS [SLOTS [ipc|curve [DIR]]]]`.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/log.h"
#include "tests/bench/dispatch_bench_run.h"

using namespace proctor;

int main(int argc, char** argv) {
  bench::DispatchSettings settings;
  const auto number = [&](int i, std::uint32_t otherwise) {
    return i < argc ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  settings.runs = number(1, settings.runs);
  settings.slots = number(2, settings.slots);
  const std::string only = 3 < argc ? argv[3] : "";
  settings.threads = !only.empty();
  if (4 < argc) settings.dir = argv[4];
  log::init("bench", log::Level::kError);
  const auto measure = [&](const char* figure, bool curve) {
    settings.curve = curve;
    const bench::DispatchOutcome done = bench::dispatch(settings);
    std::printf("figure %s %.0f 1/s\n", figure, done.runs / done.seconds);
    std::fflush(stdout);
  };
  if (only != "curve") measure("dispatch.ipc_per_s", false);
  if (only != "ipc") measure("dispatch.curve_per_s", true);
  return 0;
}
