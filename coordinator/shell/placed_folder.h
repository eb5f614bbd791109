#pragma once
// A folder that somebody may move while it is used: held by a descriptor, so that where it is now
// can be told.  Adapter (file system); any thread.
#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

class PlacedFolder {
 public:
  static Result<PlacedFolder> open(const fs::path& path);

  bool is_in_place() const;  // at the path that it was opened by
  // Empty: it was removed, or this host does not say.
  fs::path now_at() const;

 private:
  PlacedFolder(fs::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  fs::path path_;
  UniqueFd fd_;
};

}  // namespace proctor
