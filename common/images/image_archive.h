#pragma once
// The files of an image archive (`docker save`, OCI layout), unpacked into a scratch folder under
// names of our own.  The archive is a stranger's: names are only keys here, never paths, links lead
// only to other files of the archive, sizes and numbers are bounded.
// One thread.  Fails with kInvalid (not such an archive), kExhausted (too large), errno_error's.
// Source: libarchive; OCI image-spec 1.0 image-layout.md.
#include <map>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

class ImageArchive {
 public:
  // `scratch` is an empty folder that outlives this.
  static Result<ImageArchive> unpack(const fs::path& archive, const fs::path& scratch);
  bool has(const std::string& name) const { return files_.contains(name); }
  // Where the file of this name lies; kInvalid: the archive has none.
  Result<fs::path> file(const std::string& name) const;
  // A small one, whole.
  Result<std::string> text(const std::string& name) const;

 private:
  std::map<std::string, fs::path> files_;
};

}  // namespace proctor
