#pragma once
// Rules that a sandbox's spec meets in every engine: mounts, images, writable places.
#include <array>
#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {
// Requests that a spec may make, the same in every kind of sandbox.  Looks at the host only for
// whether mounted paths are there.  Fails, naming the mount or variable, with kInvalid (the spec),
// kNotFound (this host has no such path).
Status check_mounts(const std::vector<SandboxMount>& mounts);
Status check_environment(const std::map<std::string, std::string>& env);

// Each place before those that lie in it, whatever the order they were asked for in: what is
// mounted over an outer place later would hide the inner one.
std::vector<SandboxMount> outer_first(std::vector<SandboxMount> mounts);

// The words that tell init (init/main.cc) where the command may write: those places of the kind's
// own, the workspace, and what is mounted for that.
std::vector<std::string> write_words(const SandboxSpec& spec, std::vector<std::string> kinds_own);

// The view of a command in the container of an image, whichever engine runs it: written once, so
// that a contract's verdict does not depend on which one a host has.  Pure, but for looking whether
// mounts are there.  Fails with kInvalid, kNotFound (not on this host).

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

// The arguments by which /bin/sh runs the command.
std::vector<std::string> shell_arguments(const SandboxSpec& spec, const std::string& command);

// Folders that a command may write to, and close: their own mode is as much its to change as what
// lies in them.  A closed one keeps the next command from starting, or the worker from reading what
// was left, and neither is the host's fault; so both begin by opening them again.  Blocking;
// thread-safe.  Fails with errno_error.

// Gives the owner of this folder all rights on it.  By descriptor: what is no folder, or a link, is
// left as it is, and so is what belongs to somebody else.
Status open_to_owner(const fs::path& folder);

// The same of the workspace and of every folder that is mounted to be written to.
Status open_writable_places(const SandboxSpec& spec);
}  // namespace proctor
