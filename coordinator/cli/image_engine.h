#pragma once
// A Docker Engine as the commands use it: questions at its unix socket, and its images through the
// `docker` program.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor::cli {
// One question to a Docker Engine over its unix socket: does it have this image, this network?

// $PROCTOR_DOCKER_SOCKET, else the usual place.
std::string docker_socket();
// kNotFound: no such image.  kUnavailable: no engine answers.
Status engine_has_image(const std::string& image);
Status engine_has_network(const std::string& network);

// The images of a Docker Engine, through the `docker` program at docker_socket().  Blocking.
// Fails with kUnavailable (no program, no engine, with what it said), kNotFound (no such image).

struct EngineImage {
  std::string id;  // "sha256:..."
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
};

Result<std::vector<EngineImage>> engine_images();
Result<EngineImage> engine_image(const std::string& reference);

struct LabelledBuild {
  std::string name;
  fs::path folder;
  std::string dockerfile;  // relative to the folder
  std::string label;       // "key=value"
  bool network = false;    // of the commands in it
};
Result<EngineImage> build_labelled(const LabelledBuild& build);
// Images with this label that nothing runs and that are older ("168h") go.  As well as can be.
void drop_old_builds(const std::string& label, const std::string& age);
}  // namespace proctor::cli
