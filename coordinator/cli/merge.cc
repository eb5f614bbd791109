// proctor merge CAMPAIGN CAMPAIGN...
#include <cstdio>

#include "coordinator/aggregate/campaign_comparison.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {

struct MergeArgs {
  std::vector<std::string> folders;
  bool json = false, csv = false, runs = false;
};

Result<std::string> merge(const MergeArgs& args) {
  std::vector<FrozenCampaign> frozen;
  std::vector<ReportInput> inputs;
  for (const std::string& folder : args.folders) {
    PROCTOR_TRY(FrozenCampaign one, load_registered(folder));
    PROCTOR_TRY(ReportInput runs, read_runs(one));
    frozen.push_back(std::move(one));
    inputs.push_back(std::move(runs));
  }
  std::vector<MergedCampaign> campaigns;
  for (std::size_t i = 0; i < frozen.size(); ++i)
    campaigns.push_back({frozen[i].registration, inputs[i]});
  const std::vector<std::string> why = why_not_pooled(campaigns);
  if (!why.empty()) {
    std::string said = "they may not be pooled:";
    for (const std::string& sentence : why) said += "\n  * " + sentence;
    return Error{Errc::kConflict, said +
                                      "\nTo see them side by side: proctor compare, or proctor "
                                      "leaderboard"};
  }
  const CampaignReport report = build_report(pooled(campaigns));
  if (args.json) return render_json(report);
  if (args.csv) return render_csv(report);
  if (args.runs) return render_runs_csv(report);
  return render_text(report, Words::kLeftOut);
}

}  // namespace

void add_merge(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "merge", "campaigns of equal tasks, methods and limits as one table, replicates pooled",
      "Writes nothing. Refused where contracts, methods, caps, prices or plans differ, and while "
      "runs are\nopen: each reason is said, exit code 2. Tasks and methods that not all have are "
      "left out and named.\n"
      "Example:\n  proctor merge week-1 week-2\n  proctor merge --runs week-1 week-2 > runs.csv");
  auto args = std::make_shared<MergeArgs>();
  command.add_option("CAMPAIGN", args->folders, "folders of campaigns, two or more")
      .required()
      .expected(2, 64);
  command.add_flag("--json", args->json, "as report.json");
  command.add_flag("--csv", args->csv, "one record per row of the tables");
  command.add_flag("--runs", args->runs, "one record per run");
  command.callback([=, &exit_code] {
    const Result<std::string> text = merge(*args);
    if (text.ok()) std::fputs(text->c_str(), stdout);
    exit_code = text.ok() ? kOk : complain(text.error());
  });
}

}  // namespace proctor::cli
