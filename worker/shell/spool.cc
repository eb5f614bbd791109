#include "worker/shell/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/unique_fd.h"
#include "common/wire/codec.h"

namespace proctor {
namespace {

constexpr const char* kResult = "result.msgpack";
constexpr const char* kArchive = "archive.tar.zst";
constexpr const char* kBuilding = ".building-";  // no campaign and no attempt begins with a dot
constexpr const char* kCorrupt = ".corrupt";

Status sync_path(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  if (::fsync(fd.get()) != 0) return errno_error("sync " + path.string(), errno);
  return ok_status();
}

Status move_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return errno_error("rename " + from.string() + " to " + to.string(), errno);
  }
  return ok_status();
}

// The folders in `dir`, sorted; nothing when it is not there.
std::vector<fs::path> folders(const fs::path& dir) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
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
  for (const fs::path& campaign : folders(root)) {
    for (const fs::path& entry : folders(campaign)) {
      if (entry.filename().string().starts_with(kBuilding)) PROCTOR_CHECK_OK(remove_tree(entry));
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
  const fs::path final_dir = parent / name;
  if (fs::exists(final_dir)) return read(final_dir);
  const fs::path building = parent / (kBuilding + name);
  PROCTOR_CHECK_OK(remove_tree(building));
  PROCTOR_CHECK_OK(make_dirs(building));
  PROCTOR_CHECK_OK(write_file(building / kResult, wire::encode(result)));
  if (!archive.empty()) {
    PROCTOR_CHECK_OK(sync_path(archive));
    PROCTOR_CHECK_OK(move_path(archive, building / kArchive));
  }
  PROCTOR_CHECK_OK(sync_path(building));
  PROCTOR_CHECK_OK(move_path(building, final_dir));
  PROCTOR_CHECK_OK(sync_path(parent));
  PROCTOR_CHECK_OK(sync_path(root_));
  return Entry{result, archive.empty() ? fs::path() : final_dir / kArchive};
}

Result<Spool::Entry> Spool::read(const fs::path& dir) const {
  PROCTOR_TRY(const std::string bytes, read_file(dir / kResult, limits::kFrameBytes));
  PROCTOR_TRY(wire::Message message, wire::decode(bytes));
  const auto* result = std::get_if<wire::ResultMessage>(&message);
  if (result == nullptr || to_string(result->attempt) != dir.filename().string()) {
    return Error{Errc::kCorrupt, dir.string() + ": not the result of this attempt"};
  }
  Entry entry{*result, {}};
  if (0 < result->archive_bytes) {
    entry.archive = dir / kArchive;
    std::error_code error;
    if (fs::file_size(entry.archive, error) != result->archive_bytes || error) {
      return Error{Errc::kCorrupt, entry.archive.string() + ": not the size its result names"};
    }
  }
  return entry;
}

Result<std::vector<Spool::Entry>> Spool::load(const std::string& campaign) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  std::vector<Entry> entries;
  for (const fs::path& dir : folders(parent)) {
    const std::string name = dir.filename().string();
    if (name.starts_with(kBuilding) || name.ends_with(kCorrupt)) continue;
    Result<Entry> entry = read(dir);
    if (entry.ok()) {
      entries.push_back(std::move(entry).value());
      continue;
    }
    log::error("spool: set aside: " + entry.error().detail);
    PROCTOR_CHECK_OK(move_path(dir, dir.string() + kCorrupt));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.result.attempt < b.result.attempt; });
  return entries;
}

Status Spool::drop(const std::string& campaign, AttemptId attempt) {
  PROCTOR_TRY(const fs::path parent, folder(campaign));
  // Out of the way in one step, so that no half of it is ever loaded.
  const fs::path dir = parent / to_string(attempt);
  if (!fs::exists(dir)) return ok_status();
  const fs::path going = parent / (kBuilding + to_string(attempt));
  PROCTOR_CHECK_OK(remove_tree(going));
  PROCTOR_CHECK_OK(move_path(dir, going));
  return remove_tree(going);
}

}  // namespace proctor
