// The coordinator's loop under more than it was made for: a plan of 1,000,000 runs, 1,000 workers
// of 100 slots that join at once, runs of ten seconds, of the workers 50 that never read what they
// are told and 50 that send Progress as fast as the socket takes it.
// `overload_bench [SECONDS [DIR]]`.
//
// overload.loop_lag_p99_ms: how long a message waits for the loop, over the last minute of the run
// or all of it, whichever is shorter; the joining is in it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/base/log.h"
#include "tests/bench/bench_coordinator.h"

using namespace proctor;

int main(int argc, char** argv) {
  log::init("bench", log::Level::kError);
  const double seconds = bench::number_of(argc, argv, 1, 45);
  constexpr std::uint32_t kWorkers = 1'000, kSlots = 100, kBad = 50, kRunMs = 10'000;
  bench::Fleet fleet = bench::start_fleet({.workers = kWorkers,
                                           .slots = kSlots,
                                           .keys = {},
                                           .server_public_z85 = "",
                                           .work_ms = kRunMs,
                                           .deaf = kBad,
                                           .flooding = kBad});
  auto campaign = bench::bench_campaign("overload-bench", 1'000, 1'000, 2 < argc ? argv[2] : "");
  const std::int64_t begun = bench::mono_ns();
  double resident_most = 0;
  campaign->options.on_status = [&](const StatusSnapshot& now) {
    if (const std::optional<std::string> how = fleet.died()) bench::give_up(*how);
    resident_most = std::max(resident_most, bench::resident_bytes());
    if (static_cast<double>(bench::mono_ns() - begun) / 1e9 < seconds) return;
    const bench::FleetReport seen = fleet.so_far();
    std::size_t workers = now.workers.size();
    for (const auto& [state, more] : now.workers_more) workers += more;
    std::printf(
        "%zu workers, %llu runs under way, %llu ended; %llu floods sent, %llu dropped; "
        "lag p50 %.1f ms, longest %.0f ms; %.0f MiB at most\n",
        workers, static_cast<unsigned long long>(now.active),
        static_cast<unsigned long long>(now.done()), static_cast<unsigned long long>(seen.flooded),
        static_cast<unsigned long long>(now.floods), now.lag.p50_ms, now.lag.max_ms,
        resident_most / (1 << 20));
    if (workers != kWorkers || now.done() == 0 || now.floods == 0)
      bench::give_up("that was no overload");
    std::printf("figure overload.loop_lag_p99_ms %.1f ms\n", now.lag.p99_ms);
    std::fflush(stdout);
    // Nobody waits for the leases of workers that are gone.
    fleet.kill();
    (void)remove_tree(campaign->dir.path());
    std::_Exit(0);
  };
  auto coordinator = bench::must(Coordinator::open(campaign->options));
  fleet.connect(coordinator->endpoints().at(0));
  bench::give_up("the loop ended: " + coordinator->run().why);
}
