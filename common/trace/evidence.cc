#include "common/trace/evidence.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/unique_fd.h"

namespace proctor {
namespace {

bool is_plain(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
         c == '-';
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

Result<std::vector<TreeEntry>> list_tree(const fs::path& dir) {
  std::vector<TreeEntry> out;
  std::error_code ec;
  fs::recursive_directory_iterator it(dir, ec);
  if (ec) return errno_error("list " + dir.string(), ec.value());
  for (const fs::recursive_directory_iterator end; it != end;) {
    TreeEntry entry;
    entry.path = it->path().lexically_relative(dir).generic_string();
    if (!is_utf8(entry.path) || limits::kDetailBytes < entry.path.size())
      return Error{Errc::kInvalid,
                   printable(entry.path, 400) + ": a name that is not UTF-8 or too long"};
    const fs::file_status status = it->symlink_status(ec);
    if (ec) return errno_error(it->path().string(), ec.value());
    if (status.type() == fs::file_type::directory) {
      entry.folder = true;
    } else if (status.type() == fs::file_type::regular) {
      entry.bytes = it->file_size(ec);
      if (ec) return errno_error(it->path().string(), ec.value());
    } else {
      return Error{Errc::kInvalid,
                   printable(it->path().string(), 400) + ": neither a regular file nor a folder"};
    }
    out.push_back(std::move(entry));
    if (limits::kArchiveEntries < out.size())
      return Error{Errc::kExhausted, dir.string() + ": more than " +
                                         std::to_string(limits::kArchiveEntries) + " entries"};
    it.increment(ec);
    if (ec) return errno_error("list " + dir.string(), ec.value());
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
  std::array<char, std::size_t{64} << 10> block{};
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

}  // namespace proctor
