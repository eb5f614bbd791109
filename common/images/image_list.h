#pragma once
// Which images an archive holds, by what its manifests and configurations say: `docker save`'s
// manifest.json, or an OCI layout's index.json.  An image's id is the digest of its configuration,
// which names the digest of every layer's contents: the same that a Docker Engine calls it by.
// Only reads.  Fails with kInvalid: bytes that do not hold together, an image of another
// architecture than this host's (the text says which).
// Source: OCI image-spec 1.0 (config.md, manifest.md, image-index.md); Docker image spec 1.2.
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/images/image_archive.h"

namespace proctor {

struct ImageLayer {
  std::string file;  // in the archive
  Digest contents;   // of the uncompressed tar
};

// What a container of the image runs when nobody says otherwise.
struct ImageConfig {
  std::vector<std::string> env;  // "NAME=value"
  std::vector<std::string> entrypoint, command;
  std::string working_dir;  // empty: "/"
};

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
// What images for this host call its architecture: "amd64".
std::string host_architecture();

}  // namespace proctor
