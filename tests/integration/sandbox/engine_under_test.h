#pragma once
// What the conformance suite needs to know of the engine it runs on: $PROCTOR_TEST_SANDBOX names
// its kind, bubblewrap, oci or docker.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor::testing {

// A place to run commands in: an engine, a fresh workspace, folders for output.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual SandboxEngine& engine() = 0;
  virtual SandboxSpec spec() = 0;         // a working one, on this bench's workspace
  virtual const fs::path& scratch() = 0;  // host folder for outputs and mounts
  // Names of what this bench's owner has left on the host: groups, containers.
  virtual std::vector<std::string> leftovers() = 0;
  // Has what runs inside a kernel of its own (gVisor)?  The host then does not see its processes,
  // and that kernel's words for a few things are its own; each test that asks says which.
  virtual bool userspace() const { return false; }
};

// Control groups of this owner, in every hierarchy.
inline std::vector<std::string> groups_of(const std::string& owner) {
  std::vector<std::string> out;
  std::error_code ec;
  std::vector<fs::path> roots = {"/sys/fs/cgroup"};
  for (fs::directory_iterator it(roots[0], ec), end; !ec && it != end; it.increment(ec))
    if (it->is_directory(ec)) roots.push_back(it->path());
  for (const fs::path& root : roots) {
    std::error_code none;
    for (fs::directory_iterator it(root / "proctor" / owner, none), end; !none && it != end;
         it.increment(none))
      if (it->is_directory(none)) out.push_back(it->path().string());
  }
  return out;
}

// Those of them that somebody is in: an empty one waits for the next command.
inline std::vector<std::string> busy_groups_of(const std::string& owner) {
  std::vector<std::string> out;
  for (const std::string& group : groups_of(owner))
    if (std::ifstream(group + "/cgroup.procs").peek() != std::ifstream::traits_type::eof())
      out.push_back(group);
  return out;
}

SandboxKind sandbox_under_test();
// Empty, with a MESSAGE that names the reason, when the engine is not to be had on this machine.
std::unique_ptr<Bench> make_bench();
std::unique_ptr<Bench> make_bubblewrap_bench();
std::unique_ptr<Bench> make_docker_bench();
std::unique_ptr<Bench> make_oci_bench();

}  // namespace proctor::testing
