#pragma once
// A zip file that is written member by member: the container of an Inspect log.  Adapter (file
// system, libarchive).
#include <memory>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
class ZipFile {
 public:
  // Nothing lies at `path` until finish(); what is written before is beside it.
  static Result<ZipFile> create(const fs::path& path);
  ZipFile(ZipFile&&) noexcept;
  ZipFile& operator=(ZipFile&&) = delete;
  ~ZipFile();  // without finish(): as if there had been none
  // Members have no time: the same members give the same bytes.
  Status add(const std::string& name, std::string_view bytes);
  Status finish();

 private:
  struct Writer;
  explicit ZipFile(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};
}  // namespace proctor
