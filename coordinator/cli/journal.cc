// proctor journal check, head, recover: is the campaign's journal whole, what stands for it
// elsewhere, and what can be saved if it is damaged.
#include <cstdio>

#include "common/base/text.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/journal_around.h"
#include "coordinator/cli/journal_commands.h"
#include "coordinator/cli/journal_recover.h"
#include "coordinator/cli/verify_seal.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_check.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
namespace {

// A journal that is whole in itself may still know less than what is around it.
void look_beside(const std::string& folder, std::vector<std::string>& problems) {
  const Result<FrozenCampaign> frozen = load_registered(folder);
  const Result<Around> around = frozen.ok() ? look_around(*frozen) : Result<Around>(frozen.error());
  if (!around.ok()) {
    std::printf("not compared with runs/ and Redis: %s\n", around.error().detail.c_str());
    return;
  }
  if (!around->unasked.empty())
    std::printf("not compared with Redis: %s\n", around->unasked.c_str());
  for (const std::string& problem : around->problems)
    problems.push_back("its end is missing: " + problem);
}

int check(const std::string& folder) {
  const fs::path file = StateFolder{folder}.journal();
  if (const auto owner = journal_owner(file))
    return complain({Errc::kConflict, "this campaign is running: " + *owner});
  Result<JournalFinding> found = check_journal(file);
  if (!found.ok()) return complain(found.error());
  // No journal in no campaign is a folder mistyped.
  if (found->blank)
    if (const Result<FrozenCampaign> frozen = load_registered(folder); !frozen.ok())
      return complain(frozen.error());
  if (found->problems.empty()) look_beside(folder, found->problems);
  for (const std::string& problem : found->problems) std::printf("damaged: %s\n", problem.c_str());
  const auto n = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf("%s: %s, %s ended, %llu parked for money, %s, %s, last epoch %llu\n", file.c_str(),
              counted(found->attempts, "attempt").c_str(), counted(found->ended, "run").c_str(),
              n(found->parked), counted(found->notes, "note").c_str(),
              counted(found->reviews, "review").c_str(), n(found->last_epoch.raw()));
  if (found->wal.there)
    std::printf(
        "its log: %llu transactions in %llu of %llu frames; what follows them was never "
        "committed\n",
        n(found->wal.commits), n(found->wal.valid), n(found->wal.frames));
  if (found->problems.empty()) {
    std::printf("%s\n", found->blank ? nothing_granted(folder).c_str() : "it is whole");
    return kOk;
  }
  std::printf("proctor journal recover %s rebuilds it and says what could not be saved\n",
              folder.c_str());
  return kJobFailed;
}

int head(const std::string& folder) {
  const Result<JournalHead> head = present_head(StateFolder{folder}.journal());
  if (!head.ok()) return complain(head.error());
  std::printf("%s\n", to_string(*head).c_str());
  return kOk;
}

int recover(const std::string& folder, bool behind) {
  return code_of(recover_journal(folder, behind));
}

}  // namespace

void add_journal(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "journal", "look after the campaign's journal: export, check, head, recover",
      "Example:\n  proctor journal check my-campaign");
  command.require_subcommand(1);
  add_journal_export(command, exit_code);
  const auto verb = [&](const char* name, const char* what, const char* footer,
                        int (*act)(const std::string&)) {
    const Command sub = command.add_subcommand(name, what, footer);
    auto folder = std::make_shared<std::string>();
    sub.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
    sub.callback([=, &exit_code] { exit_code = act(*folder); });
  };
  verb("check", "say whether the journal is whole, or what is damaged",
       "Example:\n  proctor journal check my-campaign\nChanges nothing. Exit code 1 when something "
       "is damaged.",
       check);
  verb("head", "one line that stands for all that is final in it now, to be kept elsewhere",
       "Example:\n  proctor journal head my-campaign >> /elsewhere/heads\n"
       "  proctor verify my-campaign --head /elsewhere/heads\n"
       "A journal whose rows were rewritten since does not extend it, whoever rewrote them.",
       head);
  const Command rebuild = command.add_subcommand(
      "recover",
      "rebuild a damaged journal from what is readable and from "
      "runs/",
      "Example:\n  proctor journal recover my-campaign && proctor resume my-campaign\n"
      "Keeps the damaged file. Attempts whose entry and evidence are both gone are charged at "
      "their ceiling and\n"
      "their runs are queued again; what workers still hold is delivered when they connect.");
  auto folder = std::make_shared<std::string>();
  auto behind = std::make_shared<bool>(false);
  rebuild.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
  rebuild.add_flag("--behind", *behind,
                   "its end is missing although nothing here shows it: a worker said so, or you "
                   "put an older copy back");
  rebuild.callback([=, &exit_code] { exit_code = recover(*folder, *behind); });
}

}  // namespace proctor::cli
