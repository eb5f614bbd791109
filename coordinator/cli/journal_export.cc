// proctor journal export: every fact, as JSON lines.
#include <cstdio>
#include <memory>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/journal_commands.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
namespace {

// `table` first, then the columns by name; beside a run's number its name.
Result<int> export_lines(const std::string& folder) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  bool written = true;
  PROCTOR_CHECK_OK(journal.each_row_of_all([&](std::string_view table, const Json& row) {
    Json out = row;
    out["table"] = table;
    if (row.contains("run") && row["run"].is_number_integer() &&
        0 <= row["run"].get<std::int64_t>()) {
      const auto run = row["run"].get<std::uint64_t>();
      if (run < frozen.plan.size())
        out["run_name"] = frozen.plan.run_name(RunId(static_cast<std::uint32_t>(run)));
    }
    const std::string line = out.dump(-1, Json::Utf8::kReplace, true) + "\n";
    written = written && std::fwrite(line.data(), 1, line.size(), stdout) == line.size();
  }));
  if (!written || std::fflush(stdout) != 0) return errno_error("write the export", errno);
  return kOk;
}

}  // namespace

void add_journal_export(Command journal, int& exit_code) {
  const Command command = journal.add_subcommand(
      "export", "every fact of the journal, as JSON lines",
      "Example:\n  proctor journal export my-campaign > facts.jsonl\n"
      "One object a line, described in schemas/journal_export.schema.json. Beside a running\n"
      "coordinator it is the state of one instant.");
  auto folder = std::make_shared<std::string>();
  command.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
  command.callback([=, &exit_code] { exit_code = code_of(export_lines(*folder)); });
}

}  // namespace proctor::cli
