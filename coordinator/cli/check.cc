// proctor check CAMPAIGN: every error, nothing run.
#include <cstdio>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {

int check(const std::string& folder, bool offline) {
  Result<Campaign> campaign = load_checked(folder, offline ? Outside::kSkip : Outside::kCheck);
  if (!campaign.ok()) return complain(campaign.error());
  std::printf("%s: %zu tasks x %zu methods x %u replicates, at most %s USD\n",
              campaign->name.c_str(), campaign->contracts.size(), campaign->methods.size(),
              campaign->replicates, format_usd(campaign->envelopes.global).c_str());
  for (const Contract& c : campaign->contracts)
    std::printf("  %-28s %s  %s USD per run\n", c.id.c_str(), c.digest.short_hex().c_str(),
                format_usd(campaign->run_cap(c)).c_str());
  std::puts("no errors");
  return kOk;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("check", "validate everything, say every error, run nothing");
  command->footer(
      "Example:\n  proctor check examples/quickstart/campaign\n"
      "Exit code 2 when there is any error.");
  auto folder = std::make_shared<std::string>();
  auto offline = std::make_shared<bool>(false);
  command->add_option("CAMPAIGN", *folder, "the campaign's folder")->required();
  command->add_flag("--offline", *offline, "do not look at repositories, images and patches");
  command->callback([=, &exit_code] { exit_code = check(*folder, *offline); });
}

}  // namespace proctor::cli
