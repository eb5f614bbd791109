#pragma once
// Named volumes of the Docker Engine, over its unix socket: three requests of Engine API 1.40 and
// no more.  Blocking, 30 s at most each.  Thread-safe.
// Fails with kUnavailable (no engine, no answer), kInvalid (the engine refuses, with its words).
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

using DockerLabels = std::map<std::string, std::string>;

class DockerVolumes {
 public:
  explicit DockerVolumes(std::string socket) : socket_(std::move(socket)) {}
  // A volume that shows the folder `device` (driver "local", a bind mount).
  Status create(const std::string& name, const fs::path& device, const DockerLabels& labels) const;
  Status remove(const std::string& name) const;  // absent is fine
  // Names of the volumes that have all of `labels`, with their labels.
  Result<std::map<std::string, DockerLabels>> list(const DockerLabels& labels) const;

 private:
  std::string socket_;
};

}  // namespace proctor
