#pragma once
// What the conformance suite needs to know of the engine it runs on.  One implementation is linked
// into each test binary.
#include <memory>
#include <string>

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
};

// Empty, with a MESSAGE that names the reason, when the engine is not to be had on this machine.
std::unique_ptr<Bench> make_bench();

}  // namespace proctor::testing
