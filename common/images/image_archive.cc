#include "common/images/image_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <cerrno>

#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kEntriesMax = 10'000;
constexpr std::int64_t kBytesMax = std::int64_t{64} << 30;
constexpr std::size_t kTextMax = std::size_t{8} << 20;
constexpr std::size_t kBlock = std::size_t{1} << 20;

using Reader = Owned<archive, archive_read_free>;

Error broken(archive* reader, const fs::path& path) {
  const char* text = archive_error_string(reader);
  return Error{Errc::kInvalid,
               path.string() + ": " + printable(text == nullptr ? "not a tar archive" : text, 300)};
}

// "a/../b/./c" of one name's link, as text; empty: it leads out of the archive.
std::string resolved(const std::string& from, const std::string& target) {
  const fs::path whole = (fs::path(from).parent_path() / target).lexically_normal();
  return is_safe_relative(whole.string()) ? whole.string() : std::string();
}

std::string key_of(const char* raw) {
  std::string name = raw == nullptr ? "" : raw;
  while (name.starts_with("./")) name.erase(0, 2);
  return name;
}

}  // namespace

Result<ImageArchive> ImageArchive::unpack(const fs::path& archive, const fs::path& scratch) {
  const Reader reader(archive_read_new());
  if (!reader) return Error{Errc::kUnavailable, "libarchive: no memory"};
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_filter_zstd(reader.get());
  const UniqueFd in(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.valid()) return errno_error("open " + archive.string(), errno);
  if (archive_read_open_fd(reader.get(), in.get(), kBlock) != ARCHIVE_OK)
    return broken(reader.get(), archive);
  ImageArchive out;
  std::map<std::string, std::string> links;
  std::int64_t bytes = 0;
  for (std::size_t n = 0;; ++n) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) return broken(reader.get(), archive);
    if (n == kEntriesMax)
      return Error{Errc::kExhausted, archive.string() + ": more than 10000 entries"};
    const std::string name = key_of(archive_entry_pathname(entry));
    const char* link = archive_entry_hardlink(entry);
    const char* symlink = archive_entry_symlink(entry);
    if (link != nullptr) {
      links[name] = key_of(link);
    } else if (symlink != nullptr) {  // `docker save` links layers that two images share
      links[name] = resolved(name, symlink);
    } else if (archive_entry_filetype(entry) == AE_IFREG) {
      bytes += archive_entry_size(entry);
      if (kBytesMax < bytes) return Error{Errc::kExhausted, archive.string() + ": above 64 GiB"};
      const fs::path at = scratch / std::to_string(n);
      const UniqueFd to(::open(at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!to.valid()) return errno_error("create " + at.string(), errno);
      errno = 0;
      if (archive_read_data_into_fd(reader.get(), to.get()) != ARCHIVE_OK) {
        if (errno == ENOSPC || errno == EDQUOT) return errno_error(at.string(), errno);
        return broken(reader.get(), archive);
      }
      out.files_[name] = at;
    }
  }
  for (const auto& [name, target] : links)
    if (const auto found = out.files_.find(target); found != out.files_.end())
      out.files_.emplace(name, fs::path(found->second));
  if (out.files_.empty()) return Error{Errc::kInvalid, archive.string() + ": holds no file"};
  return out;
}

Result<fs::path> ImageArchive::file(const std::string& name) const {
  const auto found = files_.find(name);
  if (found == files_.end())
    return Error{Errc::kInvalid, "the image archive has no " + printable(name)};
  return found->second;
}

Result<std::string> ImageArchive::text(const std::string& name) const {
  PROCTOR_TRY(const fs::path at, file(name));
  return read_file(at, kTextMax);
}

}  // namespace proctor
