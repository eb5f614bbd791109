#pragma once
// Where the files come from that a contract or a method refers to: the folder of its YAML file, or
// a bundle that arrived.  Both give the same bytes under the same bounds.
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/contract/contract.h"

namespace proctor {
class FileSource {
 public:
  virtual ~FileSource() = default;
  // kInvalid: not a safe relative path, a symbolic link on the way, not a regular file; kNotFound;
  // kExhausted: above limits::kReferencedFileBytes.
  virtual Result<ReferencedFile> read(const std::string& path) const = 0;
};

// Reads from a folder.  Symbolic links are refused in every component below the folder, so that
// nothing outside it can become part of a contract.  The mode is kept only as "executable by its
// owner" (0644 or 0755), as git does: a umask must not make a new version.
class FolderFiles : public FileSource {
 public:
  static Result<std::unique_ptr<FolderFiles>> open(const std::filesystem::path& folder);
  Result<ReferencedFile> read(const std::string& path) const override;

 private:
  explicit FolderFiles(UniqueFd folder) : folder_(std::move(folder)) {}
  UniqueFd folder_;
};

// Hands out what it was given.
class GivenFiles : public FileSource {
 public:
  void add(ReferencedFile file);
  Result<ReferencedFile> read(const std::string& path) const override;

 private:
  std::map<std::string, ReferencedFile> files_;
};
}  // namespace proctor
