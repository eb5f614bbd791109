#pragma once
// `environment.image` as a mapping: an image that is made from a Dockerfile.  Internal to this
// room.
#include <optional>
#include <string>

#include "common/contract/contract.h"
#include "common/contract/rules.h"

namespace proctor {

// Nothing after a diagnostic.  Its Dockerfile and files are among `files` afterwards.
std::optional<ImageBuild> read_image_build(const Node& node, const std::string& path,
                                           FileCollector& files, Problems& problems);

// What the agent's image must not hold.  Requires: the rest of the contract is read.
void check_image_build(const Fields& contract, const Contract& c);

}  // namespace proctor
