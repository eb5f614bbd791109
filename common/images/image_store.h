#pragma once
// ImageStore: images unpacked once per host, one folder each, named by the image's id:
//   <store>/<64 hex>/image.json   what it is called, how large it is
//   <store>/<64 hex>/rootfs/      all layers, one over the other; never written again
// Published whole by a rename: a process that dies half-way leaves a folder that the next import
// removes.  Importing is one process at a time (a lock that dies with its holder); finding and
// listing need no lock.  The folder is closed to other users: images hold set-user-id programs.
// Thread-safe.  Fails with kNotFound (no such image), kInvalid (the archive), errno_error's.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/images/image_list.h"

namespace proctor {

struct StoredImage {
  std::string id;                  // "sha256:..."
  std::string manifest;            // "sha256:..." of its OCI manifest, when it came with one
  std::vector<std::string> names;  // "base:latest", sorted
  std::uint64_t bytes = 0;         // of all files, as unpacked
  // Nothing: imported before this was kept; import it again to run its own program.
  std::optional<ImageConfig> config{};
};

// Where workers and `proctor images` look when nobody says otherwise: this variable, else a folder
// of the user's state ($XDG_STATE_HOME).
inline constexpr const char* kImageStoreVariable = "PROCTOR_IMAGES";
fs::path default_image_store();

class ImageStore {
 public:
  // Makes the folder when it is not there.
  static Result<ImageStore> open(const fs::path& dir);
  // Unpacks the images of an archive that are not there yet; gives all of them the archive's names.
  Result<std::vector<StoredImage>> import_archive(const fs::path& archive) const;
  // By id, by "name@digest" or by name ("base" is "base:latest").
  Result<StoredImage> find(const std::string& reference) const;
  Result<std::vector<StoredImage>> list() const;
  fs::path root_of(const StoredImage& image) const;
  // kNotFound: it was not there.
  Status remove(const std::string& reference) const;
  const fs::path& dir() const { return dir_; }

 private:
  explicit ImageStore(fs::path dir) : dir_(std::move(dir)) {}
  fs::path folder_of(const std::string& id) const;
  Result<StoredImage> read(const std::string& id) const;
  void sweep() const;
  Status take_names(const std::vector<std::string>& names, const std::string& owner) const;
  fs::path dir_;
};

}  // namespace proctor
