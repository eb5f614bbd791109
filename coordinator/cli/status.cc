// proctor status CAMPAIGN [--watch] [--json]

#include "coordinator/shell/status.h"

#include <cstdio>
#include <thread>
#include <utility>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/fields.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/pilot_commands.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/status_file.h"

namespace proctor::cli {
namespace {

Result<SeenStatus> read_status(StatusReader& reader, const fs::path& folder) {
  PROCTOR_TRY(std::optional<SeenStatus> seen, reader.look());
  if (seen) return std::move(*seen);
  return Error{Errc::kNotFound, folder.string() + " has not been run yet: proctor run " +
                                    folder.string() + " begins"};
}

Result<CampaignReport> rows_of(StatusReader& reader, const SeenStatus& seen) {
  const Result<FrozenCampaign>& frozen = reader.campaign();
  if (!frozen.ok()) return frozen.error();
  // Of the moment that the rest is of, and read once.
  return seen.held ? read_report(*frozen, seen.held->journal, seen.held->view)
                   : read_report(*frozen);
}

// A coordinator writes once a second: one that has not for a while does nothing else either.
void tell_if_silent(const SeenStatus& seen) {
  constexpr std::int64_t kSilentMs = 10'000;
  if (seen.held || seen.stands != SeenStatus::Stands::kRuns) return;
  const std::int64_t silent = wall_now().raw() - seen.status.at.raw();
  if (silent < kSilentMs) return;
  std::fprintf(stderr,
               "proctor: its coordinator (process %lld) has said nothing since %s, for %s: it "
               "hangs, is stopped, or its disk does not answer; this is what it said then\n",
               static_cast<long long>(seen.status.pid), to_rfc3339(seen.status.at).c_str(),
               format_duration(std::chrono::seconds(silent / 1'000)).c_str());
}

// By method and stratum, from the journal.  Files that were changed meanwhile, or a journal that
// cannot be read just now, cost these rows and not the rest.
std::string with_rows(const StatusSnapshot& status, const Result<CampaignReport>& report,
                      bool json) {
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

// Advice that can be typed as it stands.
void name_folder(StatusSnapshot& s, const std::string& folder) {
  const auto tell = [&](std::string& text) { text = told_with_folder(std::move(text), folder); };
  tell(s.state);
  tell(s.eta_waits);
  if (s.gate) tell(s.gate->text);
  for (std::string& fault : s.faults) tell(fault);
  for (auto& alert : s.alerts) tell(alert.text);
  for (auto& worker : s.workers) tell(worker.state);
}

int show(const std::string& folder, bool watch, bool json) {
  StatusReader reader(folder);
  for (;;) {
    Result<SeenStatus> seen = read_status(reader, folder);
    if (!seen.ok()) return complain(seen.error());
    name_folder(seen->status, folder);
    const std::string text = with_rows(seen->status, rows_of(reader, *seen), json);
    if (watch && !json) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    tell_if_silent(*seen);
    if (!seen->doubt.empty())
      std::fprintf(stderr,
                   "proctor: this is what its last coordinator said, and what was done since is "
                   "not in it, for its journal cannot be read: %s\n",
                   printable(seen->doubt, 4 * limits::kDetailBytes).c_str());
    using Stands = SeenStatus::Stands;
    if (!watch || seen->stands == Stands::kComplete || seen->stands == Stands::kStopped) return kOk;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void add_status(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("status", "progress by method and stratum, budget and workers",
                         "Example:\n  proctor status --watch my-campaign");
  struct Args {
    std::string folder;
    bool watch = false, json = false;
  };
  auto args = std::make_shared<Args>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--watch", args->watch, "again every second, until it ends");
  command.add_flag("--json", args->json, "for scripts");
  command.callback([=, &exit_code] { exit_code = show(args->folder, args->watch, args->json); });
}

}  // namespace proctor::cli
