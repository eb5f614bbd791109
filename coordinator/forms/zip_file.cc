#include "coordinator/forms/zip_file.h"

#include <archive.h>
#include <archive_entry.h>

#include "common/base/owned.h"

namespace proctor {
using WriteArchive = Owned<archive, archive_write_free>;
using ZipEntry = Owned<archive_entry, archive_entry_free>;

constexpr std::time_t kFirstZipDay = 315'532'800;  // 1980-01-01: zip knows no earlier one

struct ZipFile::Writer {
  fs::path path, temporary;
  WriteArchive out;

  Error failed(const char* what) const {
    const char* why = archive_error_string(out.get());
    return Error{Errc::kUnavailable, path.string() + ": " + what + ": " +
                                         (why == nullptr ? "no reason was given" : why)};
  }
};

ZipFile::ZipFile(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
ZipFile::ZipFile(ZipFile&&) noexcept = default;

ZipFile::~ZipFile() {
  if (writer_ == nullptr || writer_->out == nullptr) return;
  writer_->out.reset();
  std::error_code ec;
  fs::remove(writer_->temporary, ec);
}

Result<ZipFile> ZipFile::create(const fs::path& path) {
  auto writer = std::make_unique<Writer>();
  writer->path = path;
  writer->temporary = path;
  writer->temporary += ".part";
  writer->out.reset(archive_write_new());
  archive* out = writer->out.get();
  if (out == nullptr) return Error{Errc::kUnavailable, path.string() + ": no memory"};
  // libarchive makes files of its own umask; what is made here is its owner's.
  if (const Status empty = write_file(writer->temporary, "", Durability::kLazy); !empty.ok())
    return empty.error();
  if (archive_write_set_format_zip(out) != ARCHIVE_OK ||
      archive_write_open_filename(out, writer->temporary.c_str()) != ARCHIVE_OK)
    return writer->failed("it cannot be written");
  return ZipFile(std::move(writer));
}

Status ZipFile::add(const std::string& name, std::string_view bytes) {
  archive* out = writer_->out.get();
  const ZipEntry entry(archive_entry_new());
  if (entry == nullptr) return Error{Errc::kUnavailable, writer_->path.string() + ": no memory"};
  archive_entry_set_pathname_utf8(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), kOpenFile);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_mtime(entry.get(), kFirstZipDay, 0);
  if (archive_write_header(out, entry.get()) != ARCHIVE_OK)
    return writer_->failed("a member cannot be written");
  while (!bytes.empty()) {
    const la_ssize_t n = archive_write_data(out, bytes.data(), bytes.size());
    if (n <= 0) return writer_->failed("a member cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

Status ZipFile::finish() {
  if (archive_write_close(writer_->out.get()) != ARCHIVE_OK)
    return writer_->failed("it cannot be finished");
  PROCTOR_CHECK_OK(sync_path(writer_->temporary));
  PROCTOR_CHECK_OK(rename_path(writer_->temporary, writer_->path));
  writer_->out.reset();
  return sync_path(writer_->path.parent_path());
}
}  // namespace proctor
