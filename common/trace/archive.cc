#include "common/trace/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "common/base/owned.h"
#include "common/trace/evidence.h"

namespace proctor {
namespace {

struct FreeWriter {
  void operator()(archive* a) const { archive_write_free(a); }
};
using Writer = std::unique_ptr<archive, FreeWriter>;
struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

// Where libarchive's output goes: a file, counted and hashed on the way.
struct Sink {
  int fd = -1;
  Sha256 hash;
  std::uint64_t bytes = 0;
  std::optional<Error> error;  // the real reason; libarchive only knows that it failed
};

la_ssize_t write_block(archive*, void* data, const void* buffer, std::size_t n) {
  Sink& sink = *static_cast<Sink*>(data);
  std::string_view rest(static_cast<const char*>(buffer), n);
  if (limits::kArchiveBytes - sink.bytes < n) {
    sink.error = Error{Errc::kInvalid, "an archive of more than " +
                                           std::to_string(limits::kArchiveBytes) + " bytes"};
    return -1;
  }
  sink.hash.update(rest);
  sink.bytes += n;
  while (!rest.empty()) {
    const ssize_t written = ::write(sink.fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      sink.error = errno_error("write", errno);
      return -1;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
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

}  // namespace proctor
