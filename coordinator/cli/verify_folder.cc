#include "coordinator/cli/verify_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "common/base/text.h"
#include "coordinator/cli/own_folders.h"

namespace proctor::cli {
namespace {

constexpr mode_t kOthers = 077;

void check_mode(const fs::path& path, const FolderProblem& problem) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || (st.st_mode & kOthers) == 0) return;
  problem(path.string(),
          fmt::format("its mode is {:04o}, so that other users of this host can {}; it is its "
                      "owner's alone: chmod go-rwx {}",
                      st.st_mode & 07777U,
                      (st.st_mode & 022U) != 0 ? "change what lies there" : "read what lies there",
                      printable(path.string())));
}

// Whoever owns a folder changes what lies there, whatever its mode says.
void check_owner(const fs::path& path, uid_t owner, const FolderProblem& problem) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0 || st.st_uid == owner) return;
  problem(path.string(),
          fmt::format("it belongs to user {}, and the journal to user {}: who has it "
                      "can change what lies there",
                      st.st_uid, owner));
}

// Everybody could put other folders in the place of the campaign's own.
void check_open(const fs::path& campaign, const FolderProblem& problem) {
  struct stat st {};
  if (::stat(campaign.c_str(), &st) != 0) return;
  if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
    problem(
        campaign.string(),
        fmt::format("its mode is {:04o}, so that every user of this host can put something else "
                    "in the place of runs, reports and .proctor: chmod o-w {}",
                    st.st_mode & 07777U, printable(campaign.string())));
}

}  // namespace

void verify_modes(const StateFolder& folder, const FolderProblem& problem) {
  // What is looked at below a link would be whatever lies elsewhere, whoever keeps that.
  for (const auto& [path, what] : not_own_folders(folder)) problem(path.string(), what);
  for (const fs::path& path : {folder.runs(), folder.reports(), folder.state(), folder.journal()})
    check_mode(path, problem);
  check_open(folder.campaign, problem);
  if (struct stat journal{}; ::stat(folder.journal().c_str(), &journal) == 0)
    for (const fs::path& path : {folder.runs(), folder.reports(), folder.state()})
      check_owner(path, journal.st_uid, problem);
  // Beside a journal that is written, or whose writer was killed.
  for (const char* beside : {"-wal", "-shm"}) {
    fs::path path = folder.journal();
    path += beside;
    check_mode(path, problem);
  }
}

Status verify_journal_objects(JournalReader& journal, const FolderProblem& problem) {
  PROCTOR_TRY(const std::vector<std::string> foreign, journal.foreign_objects());
  for (const std::string& what : foreign) problem("journal", what);
  return ok_status();
}

}  // namespace proctor::cli
