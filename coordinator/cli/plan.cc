// proctor plan CAMPAIGN [--freeze]: draws the run order; --freeze registers it.
#include <cstdio>

#include "common/base/text.h"
#include "coordinator/cli/analysis_notes.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/stage_text.h"
#include "coordinator/cli/task_trust.h"

namespace proctor::cli {
namespace {

int plan(const std::string& folder, bool freeze_it) {
  Result<Campaign> campaign = load_checked(folder, Outside::kSkip);
  if (!campaign.ok()) return complain(campaign.error());
  const StateFolder state{campaign->folder};
  std::error_code ec;
  const bool registered = fs::exists(state.registration(), ec);
  if (!registered) {
    Result<Digest> digest = write_plan(*campaign);
    if (!digest.ok()) return complain(digest.error());
    std::printf("%s: %s, seed %u, sha256 %s\n", state.plan().string().c_str(),
                counted(campaign->run_count(), "run").c_str(), campaign->seed,
                digest->short_hex().c_str());
    std::fputs(stages_text(*campaign).c_str(), stdout);
    std::fputs(analysis_text(*campaign).c_str(), stdout);
    for (const std::string& note : trust_notes(distrusted_tasks(*campaign)))
      std::printf("note: %s\n", note.c_str());
    if (!freeze_it) {
      std::printf("Next: proctor plan --freeze %s\n", folder.c_str());
      return kOk;
    }
  }
  Result<Registration> registration = freeze(*campaign);
  if (!registration.ok()) return complain(registration.error());
  std::printf("%s: %s as %s\n", state.registration().string().c_str(),
              registered ? "already registered, and nothing differs," : "registered",
              campaign_id(*registration).c_str());
  return kOk;
}

}  // namespace

void add_plan(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "plan", "draw the randomization plan; --freeze registers it",
      "Example:\n  proctor plan --freeze my-campaign\n"
      "docs/plan.md shows how to derive the plan again with a few lines of NumPy.");
  auto folder = std::make_shared<std::string>();
  auto freeze_it = std::make_shared<bool>(false);
  command.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
  command.add_flag("--freeze", *freeze_it,
                   "write registration.json: from then on nothing may change");
  command.callback([=, &exit_code] { exit_code = plan(*folder, *freeze_it); });
}

}  // namespace proctor::cli
