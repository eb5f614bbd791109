#pragma once
// The rules for a Dockerfile of a contract, and how it is given to an engine: only its own commands
// may fetch anything, and they have the network that the contract gives them; so bases are named by
// digest, and no other image and no URL is named at all.
// Pure; any thread.  Source: the Dockerfile reference of Docker Engine 20.10.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/contract.h"
#include "common/contract/rules.h"

namespace proctor {
struct DockerfileFault {
  std::size_t line = 0;  // of the instruction's first line, from 1
  std::string found, expected;
};

struct DockerfileFacts {
  std::vector<std::string> bases;  // as they are named, each once; without "scratch" and stages
  std::vector<DockerfileFault> faults;
};
DockerfileFacts look_at_dockerfile(std::string_view text);

// The same with every base called by what it is here, and with a label from the first layer of
// every stage on, so that no layer of it is without.
// Requires: look_at_dockerfile() finds no fault, and `ids` has all of its bases.
std::string dockerfile_for(std::string_view text, const std::map<std::string, std::string>& ids,
                           const std::string& label);

// `environment.image` as a mapping: an image that is made from a Dockerfile.  Internal to this
// room.

// nullopt after a diagnostic.  Its Dockerfile and files are among `files` afterwards.
std::optional<ImageBuild> read_image_build(const Node& node, const std::string& path,
                                           FileCollector& files, Problems& problems);

// Checks that the agent's image holds nothing that it must not.  Requires: the rest of the contract
// is read.
void check_image_build(const Fields& contract, const Contract& c);
}  // namespace proctor
