#pragma once
// The body of POST /containers/create for a spec: where every promise of the Docker sandbox is
// written down.  Pure, but for looking whether mounts are there.  Fails with kInvalid,
// kNotFound (not on this host).
// Source: Docker Engine API v1.41, ContainerCreate.
#include <string>

#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// Everything about a spec that can be judged without the engine.
Status check_docker_spec(const SandboxSpec& spec);

// Requires: check_docker_spec passed.  `init`: our first process, on the engine's host.
// `log_bytes`: of output that the engine keeps of it, the newest; 0: none.
std::string container_config(const SandboxSpec& spec, const DockerImage& image,
                             const fs::path& init, const std::string& owner,
                             const std::string& command, std::size_t log_bytes = 0);

// The container that keeps a network which others share: `dir` holds its program, `holder`, and
// the `socket` at which the worker waits for it.
inline constexpr const char* kHolderAt = "/proctor/holder";
std::string holder_config(const DockerImage& image, const fs::path& dir, const std::string& owner,
                          const std::string& label);
}  // namespace proctor
