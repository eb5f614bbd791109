#pragma once
// An image that a contract does not name but says how to make: a Dockerfile and the files it
// copies.  What it is made of has a digest, which stands for it wherever an image's name does, as
// `proctor-build@sha256:DIGEST`: workers find by it what they have built already.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/base/digest.h"

namespace proctor {

struct ReferencedFile;

inline constexpr const char* kBuiltImage = "proctor-build";
// Names that a build's own files have among those that COPY finds; no file of a contract has them.
inline constexpr const char* kBuildDockerfile = ".proctor-dockerfile";
inline constexpr const char* kBuildIgnores = ".dockerignore";

struct ImageBuild {
  std::string dockerfile;                        // a ReferencedFile's path
  std::vector<std::string> files;                // likewise: all that COPY finds
  std::map<std::string, std::string> arguments;  // ARG
  bool network = false;                          // of its RUN commands: the engine's, or none
  std::chrono::milliseconds timeout{1'800'000};
  std::vector<std::string> bases{};  // images of its FROM lines, by digest
  Digest inputs{};                   // of all of the above but the timeout
  std::string reference() const { return std::string(kBuiltImage) + "@sha256:" + inputs.hex(); }
  // What COPY calls a file: its path beside the Dockerfile.
  // Requires: it is one of `files`.
  std::string name_of(const std::string& file) const;
};

// Requires: `files` has the Dockerfile and all of `build.files`.
Digest inputs_of(const ImageBuild& build, const std::vector<ReferencedFile>& files);

}  // namespace proctor
