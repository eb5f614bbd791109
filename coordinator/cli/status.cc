// proctor status CAMPAIGN [--watch] [--json]
#include "coordinator/shell/status.h"

#include <signal.h>

#include <cstdio>
#include <thread>

#include "coordinator/cli/command.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kStatusBytes = std::size_t{64} << 20;

Result<StatusSnapshot> read_status(const fs::path& folder) {
  const fs::path path = StateFolder{folder}.status();
  Result<std::string> text = read_file(path, kStatusBytes);
  if (!text.ok() && text.error().code == Errc::kNotFound)
    return Error{Errc::kNotFound, folder.string() + " has not been run yet"};
  if (!text.ok()) return std::move(text).error();
  PROCTOR_TRY(StatusSnapshot status, parse_status(*text));
  // A snapshot outlives the process that wrote it.
  const bool ended = status.state == "complete" || status.state == "stopped";
  if (!ended && ::kill(static_cast<pid_t>(status.pid), 0) != 0 && errno == ESRCH)
    status.state = "interrupted: its coordinator is gone; proctor resume goes on";
  return status;
}

int show(const std::string& folder, bool watch, bool json) {
  for (;;) {
    Result<StatusSnapshot> status = read_status(folder);
    if (!status.ok()) return complain(status.error());
    if (watch) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs((json ? to_json(*status) : describe(*status)).c_str(), stdout);
    std::fflush(stdout);
    if (!watch || status->state == "complete" || status->state == "stopped") return kOk;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("status", "progress, budget and workers of a campaign");
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
