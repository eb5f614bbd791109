// A plan of 1,000,000 runs, from its CSV on disk to the first Assign at a worker, and what one
// queued run costs the coordinator in memory.  `queue_bench [TASKS [REPLICATES [DIR]]]`.
//
// The clock starts before the file is read and stops when the (simulated) worker in another process
// has the Assign in its hands.  Memory is the growth of resident memory from before the plan is
// read to that moment's status, divided by the runs.
#include <algorithm>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"
#include "coordinator/shell/coordinator.h"
#include "tests/bench/bench_support.h"
#include "tests/bench/dispatch_bench_campaign.h"
#include "tests/bench/dispatch_bench_workers.h"

using namespace proctor;
using bench::must;

namespace {

Plan load(const fs::path& file, const Campaign& campaign) {
  const std::string csv = must(read_file(file, limits::kPlanFileBytes));
  (void)sha256(csv);  // as `run` does, against the registration
  return must(parse_plan(file.filename().string(), csv, shape_of(campaign)));
}

int measure(std::uint32_t tasks, std::uint32_t replicates, const fs::path& where) {
  const TempDir dir = must(TempDir::create("queue-bench", where));
  // One drain after the first Assign ends the campaign in order.
  std::optional<bench::Fleet> fleet = bench::Fleet::start({.workers = 1,
                                                           .slots = 1,
                                                           .keys = {},
                                                           .server_public_z85 = "",
                                                           .interrupt_parent_at_assign = true});
  if (!fleet) return 1;
  const Campaign campaign = bench::zero_work_campaign(dir.path(), tasks, replicates);
  const StateFolder folder{dir.path()};
  if (!write_file(folder.plan(), to_csv(must(draw_plan(shape_of(campaign))))).ok()) return 1;
  const PrivateRedis redis = must(PrivateRedis::start(dir.path()));

  const double resident_before = bench::resident_bytes();
  const std::int64_t begun = bench::mono_ns();
  const Plan plan = load(folder.plan(), campaign);
  const std::int64_t parsed = bench::mono_ns();
  CoordinatorOptions options;
  options.folder = folder;
  options.campaign = "bench";
  options.definition = &campaign;
  options.plan = &plan;
  options.ledger = std::make_shared<RedisLedger>(must(RedisLedger::open(
      {.endpoint = must(parse_redis_endpoint(redis.address())), .campaign = "bench"})));
  options.scheduler.cost_model = campaign.cost_model;
  options.listen.push_back({"ipc://" + (dir.path() / "socket").string(),
                            CoordinatorOptions::Listen::Security::kFilePermissions});
  double resident_most = 0;
  options.on_status = [&](const StatusSnapshot&) {
    resident_most = std::max(resident_most, bench::resident_bytes());
    if (const std::optional<std::string> how = fleet->died()) bench::give_up(*how);
  };
  auto coordinator = must(Coordinator::open(std::move(options)));
  const std::int64_t opened = bench::mono_ns();
  fleet->connect(coordinator->endpoints().at(0));
  const Coordinator::Outcome outcome = coordinator->run();
  const std::optional<bench::FleetReport> seen = fleet->wait();
  if (outcome.end != Coordinator::End::kStopped || !seen || seen->assigned == 0)
    bench::give_up("no run was dispatched");
  const auto seconds = [&](std::int64_t at) { return static_cast<double>(at - begun) / 1e9; };
  std::printf(
      "%u runs: parsed after %.2f s, coordinator open after %.2f s, first Assign after %.2f s\n",
      plan.size(), seconds(parsed), seconds(opened), seconds(seen->first_assign_ns));
  std::printf("figure queue.bytes_per_run %.0f bytes\n",
              (resident_most - resident_before) / plan.size());
  std::printf("figure queue.load_1m_s %.2f s\n", seconds(seen->first_assign_ns));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  log::init("bench", log::Level::kError);
  return measure(bench::number_of(argc, argv, 1, 5'000), bench::number_of(argc, argv, 2, 200),
                 3 < argc ? argv[3] : "");
}
