#include "coordinator/cli/status_file.h"

#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

Result<std::optional<SeenStatus>> seen_status(const fs::path& folder) {
  constexpr std::size_t kStatusBytes = std::size_t{64} << 20;
  const fs::path path = StateFolder{folder}.status();
  Result<std::string> text = read_file(path, kStatusBytes);
  std::error_code ec;
  if (!text.ok() && !fs::exists(folder / "campaign.yaml", ec) && !fs::exists(path, ec))
    return no_campaign(folder.string());
  if (!text.ok() && text.error().code == Errc::kNotFound) return std::optional<SeenStatus>();
  if (!text.ok()) return std::move(text).error();
  SeenStatus out;
  PROCTOR_TRY(out.status, parse_status(*text));
  out.over = out.status.state == "complete" || out.status.state == "stopped";
  // A snapshot outlives the process that wrote it, whose number may be another's by now.
  out.gone = !out.over && !journal_owner(StateFolder{folder}.journal());
  return std::optional<SeenStatus>(std::move(out));
}

}  // namespace proctor::cli
