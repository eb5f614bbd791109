#include "coordinator/cli/own_folders.h"

#include "common/base/file_lock.h"
#include "common/base/text.h"

namespace proctor::cli {

std::vector<std::pair<fs::path, std::string>> not_own_folders(const StateFolder& folder) {
  std::vector<std::pair<fs::path, std::string>> out;
  for (const fs::path& path : {folder.runs(), folder.reports(), folder.state()}) {
    std::error_code ec;
    const fs::file_status is = fs::symlink_status(path, ec);
    if (!fs::exists(is) || fs::is_directory(is)) continue;
    const bool leads = fs::is_symlink(is) && fs::is_directory(path, ec);
    out.emplace_back(path, what_lies_at(path) + ", where the campaign's own folder must be: " +
                               (leads ? "put the folder that it leads to in its place"
                                      : "remove it, or put the folder back"));
  }
  return out;
}

Status check_own_folders(const StateFolder& folder) {
  for (const auto& [path, what] : not_own_folders(folder))
    return Error{Errc::kInvalid, printable(path.string(), 400) + ": " + what};
  return ok_status();
}

}  // namespace proctor::cli
