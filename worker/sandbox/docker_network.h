#pragma once
// DockerNetwork: the shared network of containers: that of one which does nothing else than to keep
// it (holder/main.cc) and to look for open ports when it is asked.  It is labelled as sandboxes
// are, and removed at the end; one that an absent engine keeps is owed. Fails with kUnavailable
// (the engine), kInvalid (no such image), kNotFound.
#include <memory>

#include "common/base/owned.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/shared_network.h"

namespace proctor {

class DockerNetwork final : public SharedNetwork {
 public:
  struct Plan {
    std::string socket, owner, label, image;
    fs::path dir;  // not there yet; removed at the end
  };
  // `owed` outlives it.
  static Result<std::shared_ptr<DockerNetwork>> make(const Plan& plan, Owed& owed);
  ~DockerNetwork() override;
  DockerNetwork(const DockerNetwork&) = delete;
  DockerNetwork& operator=(const DockerNetwork&) = delete;

  Result<bool> accepts(std::uint16_t port) override;
  std::string holder() const override { return id_; }

 private:
  DockerNetwork(DockerApi api, Owed& owed, fs::path dir)
      : api_(std::move(api)), owed_(owed), dir_(std::move(dir)) {}
  Status start(const Plan& plan);

  DockerApi api_;
  Owed& owed_;
  fs::path dir_;
  std::string id_;
  UniqueFd line_;  // to the holder
};

}  // namespace proctor
