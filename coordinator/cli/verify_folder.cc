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

}  // namespace

void verify_modes(const StateFolder& folder, const FolderProblem& problem) {
  // What is looked at below a link would be whatever lies elsewhere, whoever keeps that.
  for (const auto& [path, what] : not_own_folders(folder)) problem(path.string(), what);
  for (const fs::path& path : {folder.runs(), folder.reports(), folder.state(), folder.journal()})
    check_mode(path, problem);
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
