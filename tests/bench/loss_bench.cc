// What the loss of workers costs, that do not come back.  `loss_bench [silent|stall]`.
//
// loss.requeue_silent_s: a worker stands still (SIGSTOP); from the end of its lease, counted from
// its last Sync, until all its 100 runs are at another worker.
// loss.stall_1000_workers_s: 1,000 workers with 100,000 runs under way die at once; in sum, how
// long the coordinator's loop stood still (LagFigures::stalled_ms) from there until all runs are
// queued again.  Leases are shortened: nobody would wait for fifteen minutes.
#include <signal.h>

#include <chrono>
#include <functional>
#include <thread>

#include "common/base/log.h"
#include "tests/bench/bench_coordinator.h"

using namespace proctor;
using bench::give_up;
using bench::must;
using bench::seconds_since;
using bench::wait_for;

namespace {

constexpr std::uint32_t kForEver = 1'000'000;  // ms: longer than any of this takes

// The coordinator on this thread, `steps` on another; ends when they have ended.
void run_with(Coordinator& coordinator, const std::function<void()>& steps) {
  std::thread other([&] {
    steps();
    ::raise(SIGINT);  // one drain
  });
  (void)coordinator.run();
  other.join();
}

void measure_silent() {
  constexpr std::uint32_t kRuns = 100;
  constexpr Millis kLease(8'000);
  const bench::FleetOptions worker{.name = "silent",
                                   .workers = 1,
                                   .slots = kRuns,
                                   .keys = {},
                                   .server_public_z85 = "",
                                   .work_ms = kForEver};
  bench::FleetOptions second = worker;
  second.name = "other";
  bench::Fleet silent = bench::start_fleet(worker), other = bench::start_fleet(second);
  auto campaign = bench::bench_campaign("loss-bench", 1, kRuns);
  campaign->options.scheduler.suspect_after = Millis(4'000);
  campaign->options.scheduler.lease = kLease;
  auto coordinator = must(Coordinator::open(campaign->options));
  const std::string endpoint = coordinator->endpoints().at(0);
  silent.connect(endpoint);
  run_with(*coordinator, [&] {
    wait_for("the first worker", [&] { return silent.so_far().holding == kRuns; });
    other.connect(endpoint);
    wait_for("the second worker", [&] { return 0 < other.so_far().last_sync_ns; });
    ::kill(silent.pid(), SIGSTOP);
    const std::int64_t lease_ends = silent.so_far().last_sync_ns + kLease.count() * 1'000'000;
    wait_for("the other to have them all", [&] { return other.so_far().holding == kRuns; });
    std::printf("figure loss.requeue_silent_s %.2f s\n", seconds_since(lease_ends));
    std::fflush(stdout);
    silent.kill();
    other.kill();
  });
}

void measure_stall() {
  constexpr std::uint32_t kWorkers = 1'000, kSlots = 100, kRuns = kWorkers * kSlots;
  bench::Fleet fleet = bench::start_fleet({.workers = kWorkers,
                                           .slots = kSlots,
                                           .keys = {},
                                           .server_public_z85 = "",
                                           .work_ms = kForEver});
  auto campaign = bench::bench_campaign("loss-bench", 100, kRuns / 100);
  campaign->options.scheduler.lease = Millis(20'000);
  StatusSnapshot at_kill;
  bool killed = false, measured = false;
  std::int64_t killed_ns = 0;
  campaign->options.on_status = [&](const StatusSnapshot& now) {
    if (const std::optional<std::string> how = fleet.died()) give_up(*how);
    if (!killed && fleet.so_far().holding == kRuns) {
      killed = true;
      at_kill = now;
      killed_ns = bench::mono_ns();
      fleet.kill();
    } else if (killed && !measured && now.queued == kRuns && now.active == 0) {
      measured = true;
      std::printf("all queued again %.1f s after the loss; the longest stop %.0f ms\n",
                  seconds_since(killed_ns), now.lag.max_ms);
      std::printf("figure loss.stall_1000_workers_s %.2f s\n",
                  static_cast<double>(now.lag.stalled_ms - at_kill.lag.stalled_ms) / 1e3);
      std::fflush(stdout);
      ::raise(SIGINT);
    }
  };
  auto coordinator = must(Coordinator::open(campaign->options));
  fleet.connect(coordinator->endpoints().at(0));
  (void)coordinator->run();
}

}  // namespace

int main(int argc, char** argv) {
  log::init("bench", log::Level::kError);
  const std::string only = 1 < argc ? argv[1] : "";
  if (only.empty() || only == "silent") measure_silent();
  if (only.empty() || only == "stall") measure_stall();
  return 0;
}
