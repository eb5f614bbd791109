#pragma once
// What a command sees in the container of an image, whichever engine runs it: written once, so that
// a contract's verdict does not depend on which one a host has.  Pure, but for looking whether
// mounts are there.  Fails with kInvalid, kNotFound (not on this host).
#include <array>
#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {

inline constexpr const char* kContainerHostname = "sandbox";

// Our init, where the Docker Engine shows its own.
inline constexpr const char* kContainerInitAt = "/sbin/docker-init";

// init, the shell and what a launcher leaves are processes too, but not the command's.
inline std::int64_t processes_limit(const SandboxSpec& spec) {
  return std::int64_t{spec.processes} + (spec.launcher.empty() ? 2 : 3);
}

// Private, writable and empty at the start of each command; parents first.
struct PrivateFolder {
  const char* at;
  const char* mode;
};
inline constexpr std::array<PrivateFolder, 4> kPrivateFolders = {
    {{"/tmp", "1777"}, {"/run", "0755"}, {"/home", "0755"}, {"/home/proctor", "0755"}}};

// Everything about a spec that can be judged without the engine.  `kind` begins the error's text.
Status check_image_spec(const std::string& kind, const SandboxSpec& spec);

// The words of init before its program, for commands in a workspace.
std::vector<std::string> init_words(const SandboxSpec& spec);

// What /bin/sh is called with to run the command.
std::vector<std::string> shell_arguments(const SandboxSpec& spec, const std::string& command);

}  // namespace proctor
