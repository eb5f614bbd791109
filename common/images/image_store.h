#pragma once
// The images of an archive, and the store of images that are unpacked on this host.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/images/image_archive.h"

namespace proctor {
// Which images an archive holds, by what its manifests and configurations say: `docker save`'s
// manifest.json, or an OCI layout's index.json.  An image's id is the digest of its configuration,
// which names the digest of every layer's contents: the same that a Docker Engine calls it by.
// Only reads.  Fails with kInvalid: bytes that do not hold together, an image of another
// architecture than this host's (the text says which).
// Source: OCI image-spec 1.0 (config.md, manifest.md, image-index.md); Docker image spec 1.2.

struct ImageLayer {
  std::string file;  // in the archive
  Digest contents;   // of the uncompressed tar
};

// The program of a container of the image, where nothing else is asked for.
struct ImageConfig {
  std::vector<std::string> env;  // "NAME=value"
  std::vector<std::string> entrypoint, command;
  std::string working_dir;  // empty: "/"
};
void fields(auto& v, Is<ImageConfig> auto& config) {
  v("env", config.env);
  v("entrypoint", config.entrypoint);
  v("command", config.command);
  v("working_dir", config.working_dir);
}

struct ListedImage {
  std::string id;                  // "sha256:..." of the configuration
  std::string manifest;            // "sha256:..." of an OCI manifest; empty: the archive has none
  std::vector<std::string> names;  // "base:latest"
  std::string architecture;
  ImageConfig config;
  std::vector<ImageLayer> layers;  // bottom first
};

// At least one.
Result<std::vector<ListedImage>> list_images(const ImageArchive& archive);

// "base" -> "base:latest": one spelling for each name.
std::string plain_image_name(std::string name);
// How a worker says that it can run this image, and a coordinator that a run needs it: "image:" and
// the digest of a reference that has one, else its plain name.  At most 100 bytes, all printable:
// of what is longer, or odd, the SHA-256 stands for it.
std::string image_feature(const std::string& reference);
// The architecture of this host as images name it: "amd64".
std::string host_architecture();

// An image as its folder of the store describes it.
struct StoredImage {
  std::string id;                  // "sha256:..."
  std::string manifest;            // "sha256:..." of its OCI manifest, when it came with one
  std::vector<std::string> names;  // "base:latest", sorted
  std::uint64_t bytes = 0;         // of all files, as unpacked
  // nullopt: imported before this was kept; import it again to run its own program.
  std::optional<ImageConfig> config{};
};
void fields(auto& v, Is<StoredImage> auto& image) {
  v.follows("schema_version", 1);
  v("id", image.id);
  v("manifest", image.manifest);
  v("names", image.names);
  v("bytes", image.bytes);
  v("config", image.config, kOptional);
}

// Where workers and `proctor images` look where no folder is named: this variable, else a folder
// of the user's state ($XDG_STATE_HOME).
inline constexpr const char* kImageStoreVariable = "PROCTOR_IMAGES";
fs::path default_image_store();

// ImageStore: images unpacked once per host, one folder each, named by the image's id:
//   <store>/<64 hex>/image.json   what it is called, how large it is
//   <store>/<64 hex>/rootfs/      all layers, one over the other; never written again
// Published whole by a rename: a process that dies half-way leaves a folder that the next import
// removes.  Importing is one process at a time (a lock that dies with its holder); finding and
// listing need no lock.  The folder is closed to other users: images hold set-user-id programs.
// Thread-safe.  Fails with kNotFound (no such image), kInvalid (the archive), errno_error's.
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
