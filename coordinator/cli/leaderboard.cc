// proctor leaderboard CAMPAIGN...

#include "coordinator/aggregate/leaderboard.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "common/base/text.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/page/page.h"

namespace proctor::cli {
namespace {

struct BoardArgs {
  std::vector<std::string> folders, tasks;
  std::string out;
  bool json = false;
};

struct ReadCampaign {
  FrozenCampaign frozen;
  CampaignReport report;
};

Result<ReadCampaign> read_campaign(const std::string& folder) {
  PROCTOR_TRY(FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(CampaignReport report, read_report(frozen));
  PROCTOR_CHECK_OK(may_be_compared(folder, report.runs));
  return ReadCampaign{std::move(frozen), std::move(report)};
}

// A task that no campaign has is a typing mistake, and must not make an empty table.
Status check_tasks(const std::vector<std::string>& tasks, const std::vector<ReadCampaign>& read) {
  std::set<std::string_view> known;
  for (const ReadCampaign& c : read)
    for (const auto& [task, digest] : c.frozen.registration.contracts) known.insert(task);
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& task : tasks) {
    if (known.contains(task)) continue;
    const auto near = nearest_word(task, names);
    return Error{Errc::kNotFound, "none of these campaigns has a task " + printable(task) +
                                      (near ? " (did you mean " + *near + "?)" : "")};
  }
  return ok_status();
}

Status write_board(const Leaderboard& board, const fs::path& into) {
  PROCTOR_CHECK_OK(make_dirs(into));
  PROCTOR_CHECK_OK(write_file(into / "leaderboard.html", render_leaderboard_html(board),
                              Durability::kSync, kOpenFile));
  PROCTOR_CHECK_OK(write_file(into / "leaderboard.json", render_leaderboard_json(board),
                              Durability::kSync, kOpenFile));
  return write_file(into / "leaderboard.csv", render_leaderboard_csv(board), Durability::kSync,
                    kOpenFile);
}

Status leaderboard(const BoardArgs& args) {
  std::vector<ReadCampaign> read;
  SeenRuns seen;
  for (const std::string& folder : args.folders) {
    PROCTOR_TRY(ReadCampaign c, read_campaign(folder));
    if (const auto again = seen.add(c.report.campaign, c.report.runs); 0 < again.runs)
      return Error{Errc::kConflict,
                   fmt::format("{} runs of {} are in {} too: each campaign counts once", again.runs,
                               folder, args.folders[again.of])};
    read.push_back(std::move(c));
  }
  PROCTOR_CHECK_OK(check_tasks(args.tasks, read));
  std::vector<BoardCampaign> campaigns;
  for (std::size_t i = 0; i < read.size(); ++i)
    campaigns.push_back({read[i].frozen.registration, read[i].report, args.folders[i]});
  const Leaderboard board = make_leaderboard(campaigns, args.tasks);
  std::fputs((args.json ? render_leaderboard_json(board) : render_leaderboard_text(board)).c_str(),
             stdout);
  if (args.out.empty()) return ok_status();
  PROCTOR_CHECK_OK(write_board(board, args.out));
  if (!args.json)
    std::printf("\nThe tables: %s (open it in a browser), and .json, .csv beside it\n",
                (fs::path(args.out) / "leaderboard.html").c_str());
  return ok_status();
}

}  // namespace

void add_leaderboard(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "leaderboard", "methods of many campaigns in tables, with the ranks that the data allow",
      "Campaigns share a table where the contracts of the counted tasks are equal. A rank is a "
      "set: rows\nthat the data do not tell apart share it.\n"
      "Example:\n  proctor leaderboard campaigns/*\n"
      "  proctor leaderboard --tasks json-lib,parser --out public week-1 week-2");
  auto args = std::make_shared<BoardArgs>();
  command.add_option("CAMPAIGN", args->folders, "folders of campaigns").required();
  command.add_option("--tasks", args->tasks, "those that are counted, with commas (without: all)")
      .delimiter(',')
      .allow_extra_args(false)
      .type_name("TASK,...");
  command.add_option("--out", args->out, "write leaderboard.html, .json and .csv into this folder")
      .type_name("FOLDER");
  command.add_flag("--json", args->json, "everything, for programs");
  command.callback([=, &exit_code] { exit_code = code_of(leaderboard(*args)); });
}

}  // namespace proctor::cli
