#include "coordinator/cli/open_journal.h"

#include <fmt/format.h>

#include "coordinator/cli/journal_around.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::cli {
namespace {

// Attempts have delivered: a journal that knows of none is not that of a new campaign.
bool has_evidence(const StateFolder& folder) {
  std::error_code ec;
  for (fs::directory_iterator it(folder.runs(), ec), end; !ec && it != end; it.increment(ec))
    if (it->path() != folder.incoming()) return true;
  return false;
}

}  // namespace

Error not_begun(const fs::path& campaign) {
  return Error{Errc::kNotFound,
               fmt::format("nothing of this campaign has run yet: proctor run {} begins",
                           campaign.string())};
}

Result<std::optional<JournalReader>> begun_journal(const StateFolder& folder) {
  PROCTOR_CHECK_OK(check_journal_kinds(folder.journal()));
  std::error_code ec;
  const bool is_there = fs::exists(folder.journal(), ec);
  Result<JournalReader> reader = Error{Errc::kNotFound, "no journal"};
  if (is_there) reader = JournalReader::open(folder.journal());
  if (reader.ok()) return std::optional<JournalReader>(std::move(reader).value());
  if (reader.error().code != Errc::kNotFound) return std::move(reader).error();
  // Whoever made the file ended before anything was in it: a full disk, a kill.  Not after a result
  // came.
  const std::string begun =
      has_evidence(folder) ? folder.runs().string() + " has results" : begun_by_status(folder);
  if (begun.empty()) return std::optional<JournalReader>();
  return Error{Errc::kCorrupt,
               fmt::format("{} {}, but {}.\nTo put it back: journal.sqlite with its -wal, of the "
                           "same moment\nTo go on without it: proctor journal recover {}",
                           folder.journal().string(), is_there ? "is empty" : "is missing", begun,
                           folder.campaign.string())};
}

Result<JournalReader> open_journal(const StateFolder& folder) {
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(folder));
  if (!journal) return not_begun(folder.campaign);
  return *std::move(journal);
}

}  // namespace proctor::cli
