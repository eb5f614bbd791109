// proctor status CAMPAIGN [--watch] [--json]
#include "coordinator/shell/status.h"

#include <cstdio>
#include <thread>

#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/status_file.h"

namespace proctor::cli {
namespace {

Result<StatusSnapshot> read_status(const fs::path& folder) {
  PROCTOR_TRY(std::optional<SeenStatus> seen, seen_status(folder));
  if (!seen)
    return Error{Errc::kNotFound, folder.string() + " has not been run yet: proctor run " +
                                      folder.string() + " begins"};
  if (seen->gone)
    seen->status.state = "interrupted: its coordinator is gone; proctor resume goes on";
  return std::move(seen->status);
}

// By method and stratum, from the journal.  Files that were changed meanwhile, or a journal that
// cannot be read just now, cost these rows and not the rest.
std::string with_rows(const StatusSnapshot& status, const Result<FrozenCampaign>& frozen,
                      bool json) {
  Result<CampaignReport> report =
      frozen.ok() ? read_report(*frozen) : Result<CampaignReport>(frozen.error());
  if (!json)
    return describe(status) + "\n" +
           (report.ok() ? render_progress_text(*report)
                        : "by method and stratum: " + report.error().detail + "\n");
  std::string text = to_json(status);
  text.erase(text.rfind('}'));
  const std::string rows = report.ok() ? render_progress_json(*report) : "null";
  while (text.back() == '\n') text.pop_back();
  return text + ",\n \"groups\": " + rows + "\n}\n";
}

int show(const std::string& folder, bool watch, bool json) {
  std::optional<Result<FrozenCampaign>> frozen;  // read once: what is registered does not change
  for (;;) {
    Result<StatusSnapshot> status = read_status(folder);
    if (!status.ok()) return complain(status.error());
    if (!frozen) frozen.emplace(load_registered(folder));
    const std::string text = with_rows(*status, *frozen, json);
    if (watch && !json) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    if (!watch || status->state == "complete" || status->state == "stopped") return kOk;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  auto* command =
      app.add_subcommand("status", "progress by method and stratum, budget and workers");
  command->footer("Example:\n  proctor status --watch my-campaign");
  struct Args {
    std::string folder;
    bool watch = false, json = false;
  };
  auto args = std::make_shared<Args>();
  command->add_option("CAMPAIGN", args->folder, "the campaign's folder")->required();
  command->add_flag("--watch", args->watch, "again every second, until it ends");
  command->add_flag("--json", args->json, "for scripts");
  command->callback([=, &exit_code] { exit_code = show(args->folder, args->watch, args->json); });
}

}  // namespace proctor::cli
