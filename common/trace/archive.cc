#include "common/trace/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>

#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"

namespace proctor {
namespace {
using Writer = Owned<archive, archive_write_free>;
using Entry = Owned<archive_entry, archive_entry_free>;

// Where libarchive's output goes: a file, counted and hashed on the way.
struct Sink {
  int fd = -1;
  Sha256 hash;
  std::uint64_t bytes = 0;
  std::optional<Error> error;  // the real reason; libarchive only knows that it failed
};

// 0, or the error's number.
int write_all(int fd, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

la_ssize_t write_block(archive*, void* data, const void* buffer, std::size_t n) {
  Sink& sink = *static_cast<Sink*>(data);
  const std::string_view bytes(static_cast<const char*>(buffer), n);
  if (limits::kArchiveBytes - sink.bytes < n) {
    sink.error = Error{Errc::kInvalid, "an archive of more than " +
                                           std::to_string(limits::kArchiveBytes) + " bytes"};
    return -1;
  }
  sink.hash.update(bytes);
  sink.bytes += n;
  if (const int failed = write_all(sink.fd, bytes); failed != 0) {
    sink.error = errno_error("write", failed);
    return -1;
  }
  return static_cast<la_ssize_t>(n);
}

class Packer {
 public:
  Packer(const fs::path& dir, Sink& sink) : dir_(dir), sink_(sink) {}

  Status run() {
    PROCTOR_TRY(const std::vector<TreeEntry> entries, list_tree(dir_));
    writer_.reset(archive_write_new());
    // GNU tar keeps names as bytes; pax would translate them by the process's locale.
    if (!writer_ || archive_write_set_format_gnutar(writer_.get()) != ARCHIVE_OK ||
        archive_write_add_filter_zstd(writer_.get()) != ARCHIVE_OK ||
        // A run directory is a few KiB of text: at the next level the tables that are cleared and
        // the window that is unpacked into cost more than everything else here, for a tenth of the
        // bytes.
        archive_write_set_filter_option(writer_.get(), "zstd", "compression-level", "1") !=
            ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(writer_.get(), 1) != ARCHIVE_OK ||
        archive_write_open(writer_.get(), &sink_, nullptr, write_block, nullptr) != ARCHIVE_OK)
      return failed("open");
    for (const TreeEntry& entry : entries) PROCTOR_CHECK_OK(add(entry));
    if (archive_write_close(writer_.get()) != ARCHIVE_OK) return failed("close");
    return ok_status();
  }

 private:
  Error failed(std::string_view what) const {
    if (sink_.error) return *sink_.error;
    const char* text = writer_ ? archive_error_string(writer_.get()) : nullptr;
    return Error{Errc::kUnavailable,
                 "archive: " + std::string(what) + ": " + (text == nullptr ? "unknown" : text)};
  }

  Status add(const TreeEntry& from) {
    const fs::path path = dir_ / from.path;
    UniqueFd fd;
    struct stat st {};
    if (!from.folder) {
      fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
      if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return errno_error(path.string(), errno);
      if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, path.string() + ": no longer a file"};
    }
    const Entry entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), from.path.c_str());
    archive_entry_set_filetype(entry.get(), from.folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry.get(), from.folder ? 0755 : 0644);
    archive_entry_set_size(entry.get(), st.st_size);
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (archive_write_header(writer_.get(), entry.get()) != ARCHIVE_OK) return failed(from.path);
    return from.folder ? ok_status() : copy(fd.get(), path, static_cast<std::uint64_t>(st.st_size));
  }

  Status copy(int fd, const fs::path& path, std::uint64_t size) {
    std::array<char, std::size_t{64} << 10> block;  // NOLINT(*-member-init): a run has many files
    while (0 < size) {
      const ssize_t n = ::read(fd, block.data(), std::min<std::uint64_t>(block.size(), size));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_error(path.string(), errno);
      if (n == 0) return Error{Errc::kInvalid, path.string() + ": shrank while it was packed"};
      if (archive_write_data(writer_.get(), block.data(), static_cast<std::size_t>(n)) != n)
        return failed(path.string());
      size -= static_cast<std::uint64_t>(n);
    }
    return ok_status();
  }

  const fs::path& dir_;
  Sink& sink_;
  Writer writer_;
};
}  // namespace

Result<ArchiveInfo> pack_archive(const fs::path& dir, const fs::path& out_file) {
  const fs::path folder = out_file.has_parent_path() ? out_file.parent_path() : fs::path(".");
  std::string temp = (folder / ("." + out_file.filename().string() + ".XXXXXX")).string();
  const UniqueFd fd(::mkostemp(temp.data(), O_CLOEXEC));
  if (!fd.valid()) return errno_error("create in " + folder.string(), errno);
  Sink sink;
  sink.fd = fd.get();
  Status packed = Packer(dir, sink).run();
  if (packed.ok() && ::fsync(fd.get()) != 0) packed = errno_error("fsync " + temp, errno);
  if (packed.ok() && ::rename(temp.c_str(), out_file.c_str()) != 0)
    packed = errno_error("rename to " + out_file.string(), errno);
  if (!packed.ok()) {
    ::unlink(temp.c_str());
    return in_context("pack " + dir.string(), std::move(packed).error());
  }
  return ArchiveInfo{sink.hash.finish(), sink.bytes};
}

// Unpacking what another machine packed.  The archive is not trusted: neither its names and kinds
// nor its sizes and number of entries.

namespace {
constexpr mode_t kFolder = 0700;  // evidence is its owner's to show

using Reader = Owned<archive, archive_read_free>;

// What this machine lacks at the moment (memory, files, room on its disk) is no word about the
// archive: it may be whole, and is unpacked another time.
Error ours(std::string_view what, int error_number) {
  return {Errc::kUnavailable, errno_error(what, error_number).detail};
}

// Of a call that was given a name out of the archive.
Error of_name(std::string_view what, int error_number) {
  switch (error_number) {
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EEXIST:
    case ENAMETOOLONG:
      return {Errc::kInvalid, errno_error(what, error_number).detail};
    default:
      return ours(what, error_number);
  }
}

class Unpacker {
 public:
  Unpacker(const fs::path& into, const UnpackBounds& bounds) : into_(into), bounds_(bounds) {}

  Status run(int archive_fd) {
    root_.reset(::open(into_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!root_.valid()) return ours(into_.string(), errno);
    reader_.reset(archive_read_new());
    if (!reader_) return ours("read", ENOMEM);
    // One format and one filter: each parser that is not there cannot be attacked.
    if (archive_read_support_format_tar(reader_.get()) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(reader_.get()) != ARCHIVE_OK ||
        archive_read_open_fd(reader_.get(), archive_fd, std::size_t{64} << 10) != ARCHIVE_OK)
      return broken("open");
    if (archive_filter_code(reader_.get(), 0) != ARCHIVE_FILTER_ZSTD)
      return Error{Errc::kInvalid, "not a zstd archive"};
    for (;;) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(reader_.get(), &entry);
      if (code == ARCHIVE_EOF) return sync_folders();
      if (code != ARCHIVE_OK) return broken("header");
      if (bounds_.entries <= seen_.size())
        return Error{Errc::kInvalid, "more than " + std::to_string(bounds_.entries) + " entries"};
      PROCTOR_CHECK_OK(take(entry));
    }
  }

 private:
  // libarchive says what the system said by its number; its own numbers are EILSEQ for a wrong
  // format (EFTYPE, where there is one), EINVAL, and -1 for the rest.  That is also what a filter's
  // library says, whose only word for a lack of memory is a text: zstd's, and libarchive's own.
  Error broken(std::string_view what) const {
    const int code = archive_errno(reader_.get());
    const char* said = archive_error_string(reader_.get());
    const std::string_view text = said == nullptr ? "not a tar archive" : said;
    const bool no_memory = text.ends_with("not enough memory") ||
                           text.starts_with("Can't allocate") ||
                           text.starts_with("Couldn't allocate");
    const bool here = no_memory || (0 < code && code != EILSEQ && code != EINVAL);
    return Error{here ? Errc::kUnavailable : Errc::kInvalid,
                 std::string(what) + ": " + printable(text, 400)};
  }

  Status take(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    std::string path = raw == nullptr ? "" : raw;
    const auto refuse = [&path](std::string_view why) -> Status {
      return Error{Errc::kInvalid, "entry \"" + printable(path) + "\": " + std::string(why)};
    };
    const auto type = archive_entry_filetype(entry);
    const bool folder = type == AE_IFDIR;
    if (folder && path.ends_with('/')) path.pop_back();
    if (!is_safe_relative(path) || !is_utf8(path) || limits::kDetailBytes < path.size())
      return refuse("not a safe relative path");
    // Folders on the way are not entries: a few long names could ask for millions of them.
    if (std::ptrdiff_t{kArchiveDepth} < std::ranges::count(path, '/'))
      return refuse("nested too deeply");
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr)
      return refuse("a link");
    if (!folder && type != AE_IFREG) return refuse("neither a file nor a folder");
    if (!seen_.insert(path).second) return refuse("comes twice");
    PROCTOR_TRY(const UniqueFd parent, open_parent(path));
    const std::string name = path.substr(path.rfind('/') + 1);
    if (folder) {
      if (::mkdirat(parent.get(), name.c_str(), kFolder) == 0) return ok_status();
      // Made on the way to an earlier entry: open_folder refuses whatever is not a folder.
      if (errno != EEXIST) return of_name(path, errno);
      PROCTOR_TRY([[maybe_unused]] const UniqueFd there, open_folder(parent.get(), name, path));
      return ok_status();
    }
    if (archive_entry_size(entry) < 0 ||
        left() < static_cast<std::uint64_t>(archive_entry_size(entry)))
      return too_large();
    const UniqueFd file(::openat(parent.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 kPrivateFile));
    if (!file.valid()) return errno == EEXIST ? refuse("comes twice") : of_name(path, errno);
    return copy(file.get(), path);
  }

  std::uint64_t left() const { return bounds_.total_bytes - total_; }
  Status too_large() const {
    return Error{Errc::kInvalid,
                 "more than " + std::to_string(bounds_.total_bytes) + " bytes unpacked"};
  }

  Result<UniqueFd> open_folder(int parent, const std::string& name, const std::string& path) const {
    UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return of_name("entry \"" + printable(path) + "\"", errno);
    return fd;
  }

  // The folder that holds `path`, made on the way where it is missing; no link is followed.
  Result<UniqueFd> open_parent(const std::string& path) {
    UniqueFd at(::dup(root_.get()));
    if (!at.valid()) return ours("dup", errno);
    for (std::size_t start = 0;;) {
      const std::size_t slash = path.find('/', start);
      if (slash == std::string::npos) return at;
      const std::string name = path.substr(start, slash - start);
      if (::mkdirat(at.get(), name.c_str(), kFolder) != 0 && errno != EEXIST)
        return of_name(path, errno);
      PROCTOR_TRY(UniqueFd next, open_folder(at.get(), name, path));
      folders_.insert(path.substr(0, slash));
      at = std::move(next);
      start = slash + 1;
    }
  }

  Status copy(int fd, const std::string& path) {
    std::array<char, std::size_t{64} << 10> block;  // NOLINT(*-member-init): a run has many files
    const std::uint64_t before = total_;
    for (;;) {
      const la_ssize_t n = archive_read_data(reader_.get(), block.data(), block.size());
      if (n < 0) return broken(path);
      if (n == 0) break;
      if (left() < static_cast<std::uint64_t>(n)) return too_large();
      total_ += static_cast<std::uint64_t>(n);
      if (const int failed = write_all(fd, {block.data(), static_cast<std::size_t>(n)});
          failed != 0)
        return ours("write " + path, failed);
    }
    // An empty file is its name, and that is its folder's.
    if (total_ != before && bounds_.durability == Durability::kSync && ::fsync(fd) != 0)
      return ours("fsync " + path, errno);
    return ok_status();
  }

  Status sync_folders() {
    if (bounds_.durability != Durability::kSync) return ok_status();
    folders_.insert(".");
    for (const std::string& folder : folders_) {
      const UniqueFd fd(::openat(root_.get(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!fd.valid() || ::fsync(fd.get()) != 0) return ours("fsync " + folder, errno);
    }
    return ok_status();
  }

  const fs::path& into_;
  const UnpackBounds& bounds_;
  UniqueFd root_;
  Reader reader_;
  std::set<std::string> seen_;
  std::set<std::string> folders_;
  std::uint64_t total_ = 0;
};

Result<UniqueFd> open_archive(const fs::path& archive, const UnpackBounds& bounds) {
  UniqueFd fd(::open(archive.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) return ours(archive.string(), errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, archive.string() + ": not a regular file"};
  if (bounds.archive_bytes < static_cast<std::uint64_t>(st.st_size))
    return Error{Errc::kInvalid, archive.string() + ": larger than " +
                                     std::to_string(bounds.archive_bytes) + " bytes"};
  return fd;
}
}  // namespace

Status unpack_archive(const fs::path& archive, const fs::path& into, const UnpackBounds& bounds) {
  PROCTOR_TRY(const UniqueFd fd, open_archive(archive, bounds));
  std::error_code ec;
  if (fs::symlink_status(into, ec).type() != fs::file_type::not_found)
    return Error{Errc::kConflict, into.string() + ": is there already"};
  const fs::path parent = into.has_parent_path() ? into.parent_path() : fs::path(".");
  Result<TempDir> made = TempDir::create(".unpack", parent);
  if (!made.ok()) return Error{Errc::kUnavailable, made.error().detail};
  TempDir temp = std::move(made).value();
  if (Status s = Unpacker(temp.path(), bounds).run(fd.get()); !s.ok())
    return in_context("unpack " + archive.string(), std::move(s).error());
  if (::rename(temp.path().c_str(), into.c_str()) != 0)
    return ours("rename to " + into.string(), errno);
  temp.release();
  return ok_status();
}
}  // namespace proctor
