// 1,000,000 zero-work runs through one coordinator: what its journal takes for each and whether its
// memory grows.  `soak_bench [RUNS [DIR]]`.
//
// journal.bytes_per_run: the journal's file after the end, by the runs; journal.commits_per_run:
// its transactions (fsyncs), likewise.  soak.growth: resident memory when all runs have ended over
// that when a tenth had.
#include <cstdio>

#include "common/base/log.h"
#include "tests/bench/bench_coordinator.h"

using namespace proctor;

int main(int argc, char** argv) {
  log::init("bench", log::Level::kError);
  constexpr std::uint32_t kTasks = 1'000;
  const std::uint32_t runs = bench::number_of(argc, argv, 1, 1'000'000);
  bench::Fleet fleet =
      bench::start_fleet({.workers = 4, .slots = 256, .keys = {}, .server_public_z85 = ""});
  auto campaign =
      bench::bench_campaign("soak-bench", kTasks, runs / kTasks, 2 < argc ? argv[2] : "");
  double early = 0, late = 0;
  campaign->options.on_status = [&](const StatusSnapshot& now) {
    if (const std::optional<std::string> how = fleet.died()) bench::give_up(*how);
    if (early == 0 && runs / 10 <= now.done()) early = bench::resident_bytes();
    late = bench::resident_bytes();
  };
  auto coordinator = bench::must(Coordinator::open(campaign->options));
  fleet.connect(coordinator->endpoints().at(0));
  const std::int64_t begun = bench::mono_ns();
  const Coordinator::Outcome outcome = coordinator->run();
  const double seconds = static_cast<double>(bench::mono_ns() - begun) / 1e9;
  const JournalStats journal = coordinator->journal_stats();
  coordinator.reset();
  if (outcome.end != Coordinator::End::kComplete || early == 0 || journal.commits == 0)
    bench::give_up("the campaign did not complete: " + outcome.why);
  const double all = campaign->plan.size();
  const auto bytes = static_cast<double>(fs::file_size(campaign->options.folder.journal()));
  std::printf("%.0f runs in %.1f s; %.0f MiB resident after a tenth, %.0f MiB at the end\n", all,
              seconds, early / (1 << 20), late / (1 << 20));
  std::printf("figure journal.bytes_per_run %.0f bytes\n", bytes / all);
  std::printf("figure journal.commits_per_run %.4f\n", static_cast<double>(journal.commits) / all);
  std::printf("figure soak.growth %.3f\n", late / early);
  return 0;
}
