#include "common/images/build_context.h"

#include <archive.h>
#include <archive_entry.h>

#include "common/base/owned.h"

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

}  // namespace proctor
