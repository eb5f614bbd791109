// proctor remove-task: takes a task out after the freeze, for a reason (R173).
#include <cstdio>

#include "common/base/system_clock.h"
#include "coordinator/cli/campaign_core.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/control_client.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/verify_removals.h"
#include "coordinator/journal/journal.h"

namespace proctor::cli {
namespace {

Status remove_task(const std::string& folder, const std::string& task, const std::string& reason,
                   const std::string& by) {
  PROCTOR_TRY(FrozenCampaign frozen, load_registered(folder));
  PROCTOR_CHECK_OK(add_removal(frozen.registration, task, reason, wall_now(), by));
  PROCTOR_CHECK_OK(make_private_dirs(frozen.folder.state()));
  PROCTOR_TRY(std::optional<JournalReader> begun, begun_journal(frozen.folder));
  if (begun) {
    PROCTOR_TRY([[maybe_unused]] const RestoredState whole, load_whole(frozen, *begun));
    begun.reset();
  }
  // The journal's lock also keeps this from happening under a running campaign.
  auto opened = Journal::open(frozen.folder.journal());
  if (!opened.ok() && opened.error().code == Errc::kConflict)
    return Error{Errc::kConflict, "a coordinator is at work (" + opened.error().detail +
                                      "): a task is taken out where none is. Interrupt it once "
                                      "(Ctrl-C), then the same again, then proctor resume " +
                                      folder};
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, std::move(opened));
  std::vector<JournalWrite> note;
  note.push_back(Note{wall_now(), kNoteTaskRemoved, {}, {}, removal_note(task, reason, by)});
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r)  // no money is missing where none is asked
    if (frozen.plan.task(RunId(r)).id == task) note.push_back(RunUnparked{RunId(r)});
  PROCTOR_CHECK_OK(journal->append_and_wait(std::move(note)));
  PROCTOR_CHECK_OK(write_file(frozen.folder.registration(), to_json(frozen.registration)));
  std::printf(
      "%s is out of the campaign: none of its runs begins any more, and those that have "
      "ended keep their outcome and their evidence, and are in no rate of the report\n",
      task.c_str());
  return journal->close();
}

}  // namespace

void add_remove_task(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "remove-task", "take a task out of a registered campaign, with a reason that is recorded",
      "Example:\n  proctor remove-task my-campaign json-lib --by Ada --reason \"its suite is "
      "flaky\"");
  struct Args {
    std::string folder, task, reason, by;
  };
  auto args = std::make_shared<Args>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("TASK", args->task, "the contract's id").required();
  command
      .add_option("--reason", args->reason,
                  "why: only what makes the task itself invalid, never how runs came out")
      .required();
  command.add_option("--by", args->by, "who decided it (default: you)");
  command.callback([=, &exit_code] {
    if (args->by.empty()) args->by = user_name();
    exit_code = code_of(remove_task(args->folder, args->task, args->reason, args->by));
  });
}

}  // namespace proctor::cli
