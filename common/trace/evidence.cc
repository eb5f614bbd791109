#include "common/trace/evidence.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "common/base/limits.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/trace/payloads.h"

namespace proctor {
constexpr std::string_view kBegin = "[proctor: cut here: ", kEnd = " bytes are not kept]\n";

std::string cut_line(std::uint64_t lost, std::uint64_t written) {
  return "\n" + std::string(kBegin) + std::to_string(lost) + " of " + std::to_string(written) +
         std::string(kEnd);
}

std::optional<std::string> cut_line_of(std::string_view tail) {
  if (!tail.ends_with(kEnd)) return std::nullopt;
  tail.remove_suffix(1);
  const std::size_t begin = tail.rfind('\n');
  if (begin == std::string_view::npos) return std::nullopt;
  tail.remove_prefix(begin + 1);
  if (!tail.starts_with(kBegin)) return std::nullopt;
  return std::string(tail);
}

namespace {
bool is_plain(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
         c == '-';
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

// Adds what stands in the folder `at` below `dir`, which `top` is, and what of it are folders.
Status list_folder(int top, const fs::path& dir, const std::string& at,
                   std::vector<std::string>& folders, std::vector<TreeEntry>& out) {
  const auto where = [&](std::string_view name) {
    return (dir / (at + std::string(name))).string();
  };
  const int fd =
      ::openat(top, at.empty() ? "." : at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno_error("list " + where(""), errno);
  const Folder folder(::fdopendir(fd), &::closedir);
  if (!folder) {
    const int e = errno;
    ::close(fd);
    return errno_error("list " + where(""), e);
  }
  for (;;) {
    errno = 0;
    const dirent* const found = ::readdir(folder.get());
    if (found == nullptr) {
      if (errno != 0) return errno_error("list " + where(""), errno);
      return ok_status();
    }
    const std::string_view name = &found->d_name[0];
    if (name == "." || name == "..") continue;
    TreeEntry entry;
    entry.path = at + std::string(name);
    if (!is_utf8(entry.path) || limits::kDetailBytes < entry.path.size())
      return Error{Errc::kInvalid,
                   printable(entry.path, 400) + ": a name that is not UTF-8 or too long"};
    struct stat st {};
    if (::fstatat(fd, &found->d_name[0], &st, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error(where(name), errno);
    if (S_ISDIR(st.st_mode)) {
      entry.folder = true;
      folders.push_back(entry.path + "/");
    } else if (S_ISREG(st.st_mode)) {
      entry.bytes = static_cast<std::uint64_t>(st.st_size);
    } else {
      return Error{Errc::kInvalid,
                   printable(where(name), 400) + ": neither a regular file nor a folder"};
    }
    out.push_back(std::move(entry));
    if (limits::kArchiveEntries < out.size())
      return Error{Errc::kInvalid, dir.string() + ": more than " +
                                       std::to_string(limits::kArchiveEntries) + " entries"};
  }
}
}  // namespace

std::string check_dir_name(std::string_view check_id) {
  constexpr std::size_t kNameMax = 200;  // file systems end at 255
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < check_id.size() && out.size() <= kNameMax; ++i) {
    const char c = check_id[i];
    if (is_plain(c) || (c == '.' && 0 < i)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  if (out.empty()) return "%";
  if (out.size() <= kNameMax) return out;
  // '~' never comes out of the loop, so a cut name cannot meet a whole one.
  return out.substr(0, 100) + "~" + sha256(check_id).hex();
}

// One folder after the other, each by its descriptor: a run has few files and is listed often.
Result<std::vector<TreeEntry>> list_tree(const fs::path& dir) {
  std::vector<TreeEntry> out;
  const UniqueFd top(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) return errno_error("list " + dir.string(), errno);
  std::vector<std::string> folders = {""};  // those to look into, with a slash behind their names
  while (!folders.empty()) {
    const std::string at = std::move(folders.back());
    folders.pop_back();
    PROCTOR_CHECK_OK(list_folder(top.get(), dir, at, folders, out));
  }
  std::ranges::sort(out, {}, &TreeEntry::path);
  return out;
}

Result<EvidenceFile> hash_file(const fs::path& dir, const std::string& relative) {
  const fs::path path = dir / relative;
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return errno_error(path.string(), errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error(path.string(), errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, path.string() + ": not a regular file"};
  EvidenceFile out;
  out.path = relative;
  Sha256 hash;
  std::array<char, std::size_t{64} << 10> block;  // NOLINT(*-member-init): a run has many files
  for (;;) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    if (n == 0) break;
    hash.update({block.data(), static_cast<std::size_t>(n)});
    out.bytes += static_cast<std::uint64_t>(n);
  }
  out.digest = hash.finish();
  return out;
}

Status each_event(const fs::path& run_dir, const std::function<void(const TraceEvent&)>& take) {
  PROCTOR_TRY(const std::string text, read_file(run_dir / kEventsFile, kEventLogBytes));
  EventChain chain;
  std::string_view rest = text;
  for (std::uint64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    const Result<TraceEvent> event = chain.accept(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!event.ok())
      return Error{Errc::kCorrupt, std::string(kEventsFile) + ":" + std::to_string(line) + ": " +
                                       event.error().detail};
    take(*event);
  }
  return ok_status();
}

Result<Json> last_event(const fs::path& run_dir, std::string_view type) {
  Json out;
  PROCTOR_CHECK_OK(each_event(run_dir, [&](const TraceEvent& event) {
    if (event.type == type) out = event.payload;
  }));
  return out;
}

namespace {
// Empty: there is no such event.
Result<events::Mutation> mutation_in(const fs::path& run_dir) {
  PROCTOR_TRY(const Json payload, last_event(run_dir, events::kMutation.type));
  if (payload.is_null()) return events::Mutation{};
  if (auto mutation = events::kMutation.read(payload)) return *std::move(mutation);
  return Error{Errc::kCorrupt, "the event mutation has another shape"};
}
}  // namespace

Result<std::string> patch_of(const fs::path& run_dir) {
  PROCTOR_TRY(std::string patch, read_file(run_dir / kPatchFile, limits::kPatchBytes));
  if (!patch.empty()) return patch;
  PROCTOR_TRY(const auto mutation, mutation_in(run_dir));
  if (!mutation.unreadable.empty())
    return Error{Errc::kCorrupt,
                 "what its agent left could not be read: " + printable(mutation.unreadable)};
  return patch;
}

Result<std::vector<std::string>> refused_paths(const fs::path& run_dir) {
  PROCTOR_TRY(auto mutation, mutation_in(run_dir));
  return std::move(mutation.refused.listed);
}
}  // namespace proctor
