#pragma once
// Images that a Docker Engine builds through its API, the builder that every engine since 20.10
// has.  A connection that closes ends the build: the engine stops what runs in it and takes the
// container away, so a killed worker leaves layers at most, which carry the label.
// Blocking; any thread.  Fails with kUnavailable (engine gone, its disk or memory full, cancelled).
// Source: Docker Engine API v1.41, ImageBuild, ImageList, ImageDelete.
#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace proctor {
struct DockerBuild {
  std::string name;        // "proctor-build:..." of the image
  std::string label;       // its value of kBuildLabel; the Dockerfile gives it to every layer
  std::string context;     // a tar
  std::string dockerfile;  // a name in it
  std::map<std::string, std::string> arguments;
  bool network = false;
  std::uint64_t memory_bytes = 0;  // of each command, swap included
};
inline constexpr const char* kBuildLabel = "proctor.image";

struct DockerBuilt {
  std::string id;       // "sha256:..."; empty: it cannot be built
  std::string failure;  // then: why, in the engine's words
  std::string log;      // what engine and commands said, the newest of it
};
Result<DockerBuilt> build_docker_image(const std::string& socket, const DockerBuild& build,
                                       std::chrono::milliseconds limit, std::stop_token cancel);

// The id by which this engine knows an image, also "name@ID" that never saw a registry.  kNotFound.
Result<std::string> image_in_engine(const std::string& socket, const std::string& reference);

// Values of kBuildLabel that end in `ending`, each once, with those of layers without a name.
Result<std::vector<std::string>> labelled_builds(const std::string& socket,
                                                 const std::string& ending);
// Everything with this label, layers included, but for nothing of its bases.  kConflict: something
// uses it.
Status remove_build(const std::string& socket, const std::string& label);
}  // namespace proctor
