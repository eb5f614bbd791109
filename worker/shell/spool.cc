#include "worker/shell/spool.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/wire/codec.h"

namespace proctor {
namespace {

constexpr std::string_view kResult = ".result";
constexpr std::string_view kArchive = ".tar.zst";
constexpr std::string_view kCorrupt = ".corrupt";

fs::path with(const fs::path& parent, const std::string& name, std::string_view ending) {
  return parent / (name + std::string(ending));
}

Status remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return ok_status();
  return errno_error("remove " + path.string(), errno);
}

enum class Want { kFolders, kFiles };
// What is in `dir`, sorted; nothing when it is not there.
std::vector<fs::path> entries(const fs::path& dir, Want want) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error) == (want == Want::kFolders)) out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// "17.1" of "17.1.result".
std::optional<std::string> attempt_of(const fs::path& file, std::string_view ending) {
  std::string name = file.filename().string();
  if (name.starts_with('.') || !name.ends_with(ending)) return std::nullopt;
  name.resize(name.size() - ending.size());
  return name;
}

}  // namespace

bool is_plain_name(std::string_view text) {
  if (text.empty() || limits::kNameBytes < text.size() || text.front() == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<Spool> Spool::open(fs::path root) {
  PROCTOR_CHECK_OK(make_dirs(root));
  for (const fs::path& campaign : entries(root, Want::kFolders)) {
    for (const fs::path& file : entries(campaign, Want::kFiles)) {
      // A temporary file, or an archive whose result never came or has gone.
      const auto archived = attempt_of(file, kArchive);
      const bool half = file.filename().string().starts_with('.') ||
                        (archived && !fs::exists(with(campaign, *archived, kResult)));
      if (half) PROCTOR_CHECK_OK(remove_file(file));
    }
  }
  return Spool(std::move(root));
}

Result<fs::path> Spool::folder(const std::string& campaign) const {
  if (!is_plain_name(campaign)) return Error{Errc::kInvalid, "not a campaign's id: " + campaign};
  return root_ / campaign;
}

Result<Spool::Entry> Spool::put(const std::string& campaign, const wire::ResultMessage& result,
                                const fs::path& archive) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  const std::string name = to_string(result.attempt);
  if (fs::exists(with(parent, name, kResult))) return read(parent, name);
  if (!fs::exists(parent)) {
    PROCTOR_CHECK_OK(make_dirs(parent));
    PROCTOR_CHECK_OK(sync_path(root_));
  }
  fs::path kept;
  if (!archive.empty()) {
    kept = with(parent, name, kArchive);
    PROCTOR_CHECK_OK(rename_path(archive, kept));
  }
  // Syncs the folder too, and with it the archive's name.
  PROCTOR_CHECK_OK(write_file(with(parent, name, kResult), wire::encode(result)));
  return Entry{result, kept};
}

Result<Spool::Entry> Spool::read(const fs::path& parent, const std::string& name) {
  const fs::path file = with(parent, name, kResult);
  PROCTOR_TRY(const std::string bytes, read_file(file, limits::kFrameBytes));
  PROCTOR_TRY(wire::Message message, wire::decode(bytes));
  const auto* result = std::get_if<wire::ResultMessage>(&message);
  if (result == nullptr || to_string(result->attempt) != name) {
    return Error{Errc::kCorrupt, file.string() + ": not the result of this attempt"};
  }
  Entry entry{*result, {}};
  if (0 < result->archive_bytes) {
    entry.archive = with(parent, name, kArchive);
    std::error_code error;
    if (fs::file_size(entry.archive, error) != result->archive_bytes || error) {
      return Error{Errc::kCorrupt, entry.archive.string() + ": not the size its result names"};
    }
  }
  return entry;
}

Result<std::vector<Spool::Entry>> Spool::load(const std::string& campaign) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  std::vector<Entry> found;
  for (const fs::path& file : entries(parent, Want::kFiles)) {
    const auto name = attempt_of(file, kResult);
    if (!name) continue;
    Result<Entry> entry = read(parent, *name);
    if (entry.ok()) {
      found.push_back(std::move(entry).value());
      continue;
    }
    log::error("spool: set aside: " + entry.error().detail);
    PROCTOR_CHECK_OK(rename_path(file, file.string() + std::string(kCorrupt)));
    const fs::path archive = with(parent, *name, kArchive);
    if (fs::exists(archive))
      PROCTOR_CHECK_OK(rename_path(archive, archive.string() + std::string(kCorrupt)));
  }
  std::sort(found.begin(), found.end(),
            [](const Entry& a, const Entry& b) { return a.result.attempt < b.result.attempt; });
  return found;
}

Status Spool::drop(const std::string& campaign, AttemptId attempt) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  const std::string name = to_string(attempt);
  // The result first: what is left of a kill between the two is no entry.
  PROCTOR_CHECK_OK(remove_file(with(parent, name, kResult)));
  return remove_file(with(parent, name, kArchive));
}

}  // namespace proctor
