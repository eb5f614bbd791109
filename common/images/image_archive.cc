#include "common/images/image_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {
using Writer = Owned<archive, archive_write_free>;
using Entry = Owned<archive_entry, archive_entry_free>;

Error failed(archive* writer) {
  const char* text = writer == nullptr ? nullptr : archive_error_string(writer);
  return Error{Errc::kUnavailable,
               "pack an image's files: " + std::string(text == nullptr ? "no memory" : text)};
}

la_ssize_t append(archive*, void* to, const void* bytes, std::size_t n) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), n);
  return static_cast<la_ssize_t>(n);
}
}  // namespace

Result<std::string> build_context(const std::vector<ContextFile>& files) {
  std::string out;
  const Writer writer(archive_write_new());
  // GNU tar keeps names as bytes; pax would translate them by the process's locale.
  if (!writer || archive_write_set_format_gnutar(writer.get()) != ARCHIVE_OK ||
      archive_write_open(writer.get(), &out, nullptr, append, nullptr) != ARCHIVE_OK)
    return failed(writer.get());
  for (const ContextFile& file : files) {
    const Entry entry(archive_entry_new());
    if (!entry) return failed(nullptr);
    archive_entry_set_pathname(entry.get(), file.name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), static_cast<mode_t>(file.mode));
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.bytes.size()));
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (archive_write_header(writer.get(), entry.get()) != ARCHIVE_OK ||
        archive_write_data(writer.get(), file.bytes.data(), file.bytes.size()) !=
            static_cast<la_ssize_t>(file.bytes.size()))
      return failed(writer.get());
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK) return failed(writer.get());
  return out;
}

// ImageArchive.

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

// Layers as a root file system.

namespace {
constexpr std::uint64_t kLayerBytesMax = std::uint64_t{64} << 30;
constexpr std::size_t kLayerEntriesMax = 5'000'000;
constexpr std::string_view kMark = ".wh.";
constexpr std::string_view kOpaqueMark = ".wh..wh..opq";
constexpr int kAsPacked = ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME |
                          ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT;

Error refused(const std::string& path, std::string_view why) {
  return Error{Errc::kInvalid, "image layer: '" + printable(path) + "': " + std::string(why)};
}

Error broken(archive* a) {
  const int code = archive_errno(a);
  const char* text = archive_error_string(a);
  const std::string what = "image layer: " + printable(text == nullptr ? "not a tar" : text, 300);
  if (code == ENOSPC || code == EDQUOT) return Error{Errc::kExhausted, what};
  return Error{Errc::kInvalid, what};
}

enum class Read { kTar, kBytes };

struct Opened {
  UniqueFd fd;
  Reader reader;
};

Result<Opened> open_layer(const fs::path& layer, Read how) {
  Opened out{UniqueFd(::open(layer.c_str(), O_RDONLY | O_CLOEXEC)), Reader(archive_read_new())};
  if (!out.fd.valid()) return errno_error("open " + layer.string(), errno);
  if (!out.reader) return Error{Errc::kUnavailable, "libarchive: no memory"};
  archive* reader = out.reader.get();
  archive_read_support_filter_gzip(reader);
  archive_read_support_filter_zstd(reader);
  if (how == Read::kTar) {
    archive_read_support_format_tar(reader);
    archive_read_support_format_empty(reader);
  } else {
    archive_read_support_format_raw(reader);
  }
  if (archive_read_open_fd(reader, out.fd.get(), kBlock) != ARCHIVE_OK) return broken(reader);
  return out;
}

// Calls `each` with every entry and its path below the root ("" is the root itself).
template <class Each>
Status each_entry(archive* reader, const Each& each) {
  for (std::size_t n = 0;; ++n) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader, &entry);
    if (code == ARCHIVE_EOF) return ok_status();
    if (code != ARCHIVE_OK) return broken(reader);
    if (n == kLayerEntriesMax) return Error{Errc::kExhausted, "image layer: too many entries"};
    std::string path = key_of(archive_entry_pathname(entry));
    while (path.ends_with('/')) path.pop_back();
    if (path == ".") path.clear();
    if (!path.empty() && !is_safe_relative(path)) return refused(path, "leads out of the image");
    PROCTOR_CHECK_OK(each(entry, path));
  }
}

Status check_contents(const fs::path& layer, const Digest& expected) {
  PROCTOR_TRY(const Opened opened, open_layer(layer, Read::kBytes));
  archive_entry* entry = nullptr;
  if (archive_read_next_header(opened.reader.get(), &entry) != ARCHIVE_OK)
    return broken(opened.reader.get());
  Sha256 hash;
  std::vector<char> block(kBlock);
  for (;;) {
    const auto n = archive_read_data(opened.reader.get(), block.data(), block.size());
    if (n < 0) return broken(opened.reader.get());
    if (n == 0) break;
    hash.update({block.data(), static_cast<std::size_t>(n)});
  }
  if (const Digest found = hash.finish(); found != expected) {
    return Error{Errc::kInvalid, "image layer: its contents are sha256:" + found.hex() +
                                     ", the image names sha256:" + expected.hex()};
  }
  return ok_status();
}

// Is every folder on the way to `path` a folder and no link?
Status check_way(const fs::path& root, const std::string& path) {
  fs::path at = root;
  for (const fs::path& part : fs::path(path).parent_path()) {
    at /= part;
    std::error_code ec;
    const auto status = fs::symlink_status(at, ec);
    if (fs::exists(status) && !fs::is_directory(status)) return refused(path, "lies behind a link");
  }
  return ok_status();
}

// What this layer takes away of those below it: before it brings anything itself.
Status take_away(const fs::path& layer, const fs::path& root) {
  PROCTOR_TRY(const Opened opened, open_layer(layer, Read::kTar));
  return each_entry(opened.reader.get(), [&](archive_entry*, const std::string& path) -> Status {
    const fs::path where(path);
    const std::string name = where.filename().string();
    if (!name.starts_with(kMark)) return ok_status();
    PROCTOR_CHECK_OK(check_way(root, path));
    const fs::path folder = root / where.parent_path();
    if (name != kOpaqueMark) {
      const std::string gone = name.substr(kMark.size());
      if (!is_safe_relative(gone)) return refused(path, "takes away what is not in the image");
      return remove_tree(folder / gone);
    }
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
      PROCTOR_CHECK_OK(remove_tree(it->path()));
    return ok_status();
  });
}

// Something of another kind in a lower layer makes room.
Status make_room(const fs::path& at, archive_entry* entry) {
  struct stat st {};
  if (::lstat(at.c_str(), &st) != 0) return ok_status();
  if (S_ISDIR(st.st_mode) && archive_entry_filetype(entry) == AE_IFDIR) return ok_status();
  return remove_tree(at);
}

Status copy_data(archive* from, archive* to) {
  for (;;) {
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int code = archive_read_data_block(from, &block, &size, &offset);
    if (code == ARCHIVE_EOF) return ok_status();
    if (code != ARCHIVE_OK) return broken(from);
    if (archive_write_data_block(to, block, size, offset) < ARCHIVE_OK) return broken(to);
  }
}

Result<std::uint64_t> bring(const fs::path& layer, const fs::path& root) {
  PROCTOR_TRY(const Opened opened, open_layer(layer, Read::kTar));
  const Writer disk(archive_write_disk_new());
  if (!disk) return Error{Errc::kUnavailable, "libarchive: no memory"};
  archive_write_disk_set_options(disk.get(), kAsPacked);
  std::uint64_t bytes = 0;
  const auto one = [&](archive_entry* entry, const std::string& path) -> Status {
    if (fs::path(path).filename().string().starts_with(kMark)) return ok_status();
    const auto type = archive_entry_filetype(entry);
    const char* link = archive_entry_hardlink(entry);
    if (link == nullptr && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
      return ok_status();
    if (link != nullptr) {
      const std::string target = key_of(link);
      if (!is_safe_relative(target)) return refused(path, "a hard link out of the image");
      PROCTOR_CHECK_OK(check_way(root, target));
      archive_entry_set_hardlink(entry, (root / target).c_str());
    } else if (type == AE_IFREG) {
      bytes += static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
      if (kLayerBytesMax < bytes) return Error{Errc::kExhausted, "image layer: above 64 GiB"};
    }
    PROCTOR_CHECK_OK(check_way(root, path));
    const fs::path at = path.empty() ? root : root / path;
    PROCTOR_CHECK_OK(make_room(at, entry));
    archive_entry_set_pathname(entry, at.c_str());
    if (archive_write_header(disk.get(), entry) < ARCHIVE_OK) return broken(disk.get());
    if (0 < archive_entry_size(entry)) PROCTOR_CHECK_OK(copy_data(opened.reader.get(), disk.get()));
    if (archive_write_finish_entry(disk.get()) < ARCHIVE_OK) return broken(disk.get());
    return ok_status();
  };
  PROCTOR_CHECK_OK(each_entry(opened.reader.get(), one));
  if (archive_write_close(disk.get()) < ARCHIVE_OK) return broken(disk.get());
  return bytes;
}
}  // namespace

Result<std::uint64_t> apply_layer(const fs::path& layer, const Digest& contents,
                                  const fs::path& root) {
  PROCTOR_CHECK_OK(check_contents(layer, contents));
  PROCTOR_CHECK_OK(take_away(layer, root));
  return bring(layer, root);
}
}  // namespace proctor
