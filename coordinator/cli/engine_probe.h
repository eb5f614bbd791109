#pragma once
// One question to a Docker Engine over its unix socket: does it have this image, this network?
#include <string>

#include "common/base/result.h"

namespace proctor::cli {

// $PROCTOR_DOCKER_SOCKET, else the usual place.
std::string docker_socket();
// kNotFound: no such image.  kUnavailable: no engine answers.
Status engine_has_image(const std::string& image);
Status engine_has_network(const std::string& network);

}  // namespace proctor::cli
