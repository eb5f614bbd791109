// proctor report CAMPAIGN [--json|--csv]
#include "coordinator/aggregate/report.h"

#include <cstdio>

#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {

Result<std::string> report(const std::string& folder, bool json, bool csv, Words words) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(WrittenReport written, write_report_files(frozen, words));
  if (!json && !csv) return std::move(written.shown);
  return json ? render_json(written.report) : render_csv(written.report);
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto* command =
      app.add_subcommand("report", "tables by method and stratum; also JSON, CSV and SVG files");
  command->footer(
      "Example:\n  proctor report my-campaign\n  proctor report --json my-campaign | jq .");
  struct Args {
    std::string folder;
    bool json = false, csv = false, words = false;
  };
  auto args = std::make_shared<Args>();
  command->add_option("CAMPAIGN", args->folder, "the campaign's folder")->required();
  command->add_flag("--json", args->json, "every number with the runs behind it");
  command->add_flag("--csv", args->csv, "one record per row of the tables");
  command->add_flag("--words", args->words, "below the tables, what each of their words means");
  command->callback([=, &exit_code] {
    const Result<std::string> text =
        report(args->folder, args->json, args->csv, args->words ? Words::kShown : Words::kLeftOut);
    if (text.ok()) std::fputs(text->c_str(), stdout);
    exit_code = text.ok() ? kOk : complain(text.error());
  });
}

}  // namespace proctor::cli
