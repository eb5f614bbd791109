#include "coordinator/journal/begun_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/owned.h"
#include "coordinator/journal/host_key.h"

namespace proctor {
namespace {

constexpr std::size_t kBegunBytes = std::size_t{16} << 20;

Result<fs::path> list_file() {
  PROCTOR_TRY(const fs::path key, host_key_file());
  return key.parent_path() / "begun.campaigns";
}

}  // namespace

bool has_begun_here(std::string_view campaign) {
  const Result<fs::path> file = list_file();
  if (!file.ok() || campaign.empty()) return false;
  const Result<std::string> listed = read_file(*file, kBegunBytes);
  return listed.ok() && ("\n" + *listed).find(fmt::format("\n{}\n", campaign)) != std::string::npos;
}

Status remember_begun(std::string_view campaign) {
  if (campaign.empty() || campaign.find('\n') != std::string_view::npos)
    return Error{Errc::kInvalid, "a campaign's id is one line"};
  if (has_begun_here(campaign)) return ok_status();
  PROCTOR_TRY(const fs::path file, list_file());
  PROCTOR_CHECK_OK(make_private_dirs(file.parent_path()));
  PROCTOR_TRY(const UniqueFd fd, open_own_file(file, O_WRONLY | O_CREAT | O_APPEND));
  const std::string line = fmt::format("{}\n", campaign);  // one write: lines never mix
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return errno_error(file.string(), errno);
  return ::fsync(fd.get()) == 0 ? ok_status() : Status(errno_error(file.string(), errno));
}

}  // namespace proctor
