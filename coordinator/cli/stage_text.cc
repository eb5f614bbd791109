#include "coordinator/cli/stage_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/limits.h"
#include "common/base/text.h"

namespace proctor::cli {
namespace {

bool are_alike(const Campaign& campaign) {
  return std::ranges::all_of(campaign.stages, [](const Stage& s) { return s.draw.empty(); });
}

std::string tasks_text(const Campaign& campaign, const Stage& stage) {
  const std::string tasks = counted(campaign.tasks_of(stage), "task");
  if (stage.draw.per_stratum)
    return fmt::format("{} ({} of each stratum, drawn)", tasks, *stage.draw.per_stratum);
  return tasks;
}

}  // namespace

std::string size_text(const Campaign& campaign) {
  const std::string each = counted(campaign.contracts.size(), "task") + " x " +
                           counted(campaign.methods.size(), "method");
  if (!are_alike(campaign))
    return each + ", " + counted(campaign.stages.size(), "stage") + ", " +
           counted(campaign.run_count(), "run");
  const std::string all = each + " x " + counted(campaign.replicates, "replicate");
  if (campaign.stages.size() < 2) return all;
  return fmt::format("{} x {} stages = {}", all, campaign.stages.size(),
                     counted(campaign.run_count(), "run"));
}

std::string stages_text(const Campaign& campaign) {
  const bool asks =
      std::ranges::any_of(campaign.stages, [](const Stage& s) { return !s.rules.empty(); });
  if (campaign.stages.size() < 2 && are_alike(campaign) && !asks) return "";
  std::string out;
  for (const Stage& s : campaign.stages) {
    out += fmt::format(
        "  stage {:<22} {} x {} x {} = {}{}\n", printable(s.name), tasks_text(campaign, s),
        counted(campaign.methods.size(), "method"), counted(campaign.replicates_of(s), "replicate"),
        counted(campaign.tasks_of(s) * campaign.replicates_of(s) * campaign.methods.size(), "run"),
        s.draw.order == StageOrder::kTasks ? ", task by task" : "");
    if (!s.rules.empty()) out += "    " + printable(describe(s.rules), limits::kDetailBytes) + "\n";
  }
  return out;
}

}  // namespace proctor::cli
