#pragma once
// The images that harnesses name, as this host has them: by digest, out of the image store or the
// Docker Engine, never pulled.  Those that a harness builds are built once and found by what they
// are made of; a week after their last building they go.  One object, one thread.
// Fails with kInvalid (the harness's fault: the problem is left out) where an image is not here.
#include <map>
#include <string>

#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/import.h"

namespace proctor::cli {

class HostImages {
 public:
  // `network`: whether commands of a Dockerfile may use one.
  explicit HostImages(bool network) : network_(network) {}
  Result<std::string> id_of(const std::string& name);
  Result<std::string> build(const cvdp::BuildContext& context);

 private:
  Result<std::string> look_for(const std::string& name) const;
  Result<std::string> make(const cvdp::BuildContext& context, const std::string& digest) const;

  bool network_;
  std::map<std::string, Result<std::string>> known_, built_;
};

}  // namespace proctor::cli
