#include "tests/bench/dispatch_bench_campaign.h"

#include "common/contract/cost_model_parser.h"
#include "common/ledger/ledger.h"

namespace proctor::bench {

Campaign zero_work_campaign(const std::filesystem::path& folder, std::uint32_t tasks,
                            std::uint32_t replicates) {
  Campaign campaign;
  campaign.folder = folder;
  campaign.name = "zero-work";
  campaign.replicates = replicates;
  campaign.stages = {{"main", {}}};
  campaign.envelopes.global = kLedgerMax;
  campaign.cost_model = fallback_cost_model();
  campaign.strata = {"language"};
  const char* languages[] = {"python", "go", "rust", "c"};
  for (std::uint32_t t = 0; t < tasks; ++t) {
    Contract contract;
    contract.id = "task-" + std::to_string(t);
    contract.type = "feature";
    contract.strata = {{"language", languages[t % 4]}};
    contract.environment.sandbox = Environment::Sandbox::kNull;
    contract.digest = sha256(contract.id);
    campaign.contracts.push_back(std::move(contract));
  }
  Method noop;
  noop.name = "noop";
  noop.digest = sha256(noop.name);
  campaign.methods = {noop};
  return campaign;
}

}  // namespace proctor::bench
