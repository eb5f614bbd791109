#pragma once
// Engines: which sandbox an attempt runs in, opened when first asked for and kept.  Thread-safe.
// kAuto is docker when the contract names an image and bubblewrap when it names none: never
// another kind than the contract's author had in mind because of what this host lacks.
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/contract.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

// The kind a contract asks for.  Pure.
SandboxKind wanted_sandbox(const Environment& environment);

class Engines {
 public:
  enum class Null { kForbidden, kAllowed };
  Engines(SandboxOptions options, Null null, std::chrono::seconds engine_wait)
      : options_(std::move(options)), null_(null), engine_wait_(engine_wait) {}

  // kUnavailable: this host cannot offer it (the text names the image and the engine).
  // kInvalid: a null sandbox outside a benchmark, docker without an image.
  Result<SandboxEngine*> engine_for(const Environment& environment);
  // The same, but a Docker Engine that does not answer is waited for, and that is said: it may be
  // restarting, and a run must not be spent on it.  After `engine_wait` another worker may try.
  Result<SandboxEngine*> wait_for(const Environment& environment, std::stop_token cancel);
  // Removes what earlier lives of this worker left, in every kind that answers here.
  void clean_up();
  // "sandbox:bubblewrap", ... of the kinds that answer here now.  May take a second.
  std::vector<std::string> features();

 private:
  Result<SandboxEngine*> get(SandboxKind kind);
  void not_to_be_had(SandboxKind kind, const Error& why);
  SandboxOptions options_;
  Null null_;
  std::chrono::seconds engine_wait_;
  std::mutex mutex_;
  std::map<SandboxKind, std::unique_ptr<SandboxEngine>> open_;
  std::set<SandboxKind> told_;
};

}  // namespace proctor
