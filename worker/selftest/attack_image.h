#pragma once
// An image that holds the attack program and nothing else, as an archive in the format of `docker
// save`: engines and the image store load it without a registry.  Pure.
#include <string>

namespace proctor {

struct AttackImage {
  std::string archive;  // a tar
  std::string id;       // "sha256:..."
};
AttackImage make_attack_image(const std::string& name);

}  // namespace proctor
