#pragma once
// A campaign of zero-work runs for a coordinator in this process: a folder on a disk, an ipc
// socket, money kept in the journal (a Redis would only be a second thing to wait for).
#include <memory>

#include "common/ledger/ledger_store.h"
#include "coordinator/shell/coordinator.h"
#include "tests/bench/bench_support.h"
#include "tests/bench/dispatch_bench_campaign.h"
#include "tests/bench/dispatch_bench_workers.h"

namespace proctor::bench {

struct BenchCampaign {
  TempDir dir;
  Campaign campaign;
  Plan plan;
  CoordinatorOptions options;  // refers to both
};

inline std::unique_ptr<BenchCampaign> bench_campaign(const std::string& name, std::uint32_t tasks,
                                                     std::uint32_t replicates,
                                                     const fs::path& where = {}) {
  TempDir dir = must(TempDir::create(name, where));
  Campaign campaign = zero_work_campaign(dir.path(), tasks, replicates);
  Plan plan = must(draw_plan(shape_of(campaign)));
  auto out = std::make_unique<BenchCampaign>(
      BenchCampaign{std::move(dir), std::move(campaign), std::move(plan), {}});
  CoordinatorOptions& o = out->options;
  o.folder = StateFolder{out->dir.path()};
  o.campaign = "bench";
  o.definition = &out->campaign;
  o.plan = &out->plan;
  o.ledger = std::make_shared<JournalLedger>();
  o.scheduler.cost_model = out->campaign.cost_model;
  o.scheduler.retries.backoff = Millis(0);
  o.listen.push_back({"ipc://" + (out->dir.path() / "socket").string(),
                      CoordinatorOptions::Listen::Security::kFilePermissions});
  return out;
}

inline Fleet start_fleet(const FleetOptions& options) {
  std::optional<Fleet> fleet = Fleet::start(options);
  if (!fleet) give_up("cannot fork");
  return std::move(*fleet);
}

}  // namespace proctor::bench
