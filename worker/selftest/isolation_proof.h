#pragma once
// Is what runs in a sandbox of this engine held apart from the host?  Asked from outside: a program
// that does nothing stands still in it, and the host's own /proc says what it is.  Costs what an
// empty command costs, harms nobody whatever the answer is, and comes before all that would.
// Blocking; thread-safe (no state).  Fails with what the engine fails with: nothing stood still.
#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace proctor {

struct IsolationProof {
  // kUnseen: it stands in a place whose processes this host does not see, so nothing is known.
  // kUnfit: one of the ordinary commands in docs/sandbox.md fails in it; asked of runsc alone.
  enum class Verdict { kProved, kRefuted, kUnseen, kUnfit };
  Verdict verdict = Verdict::kUnseen;
  std::string detail;  // "the pid namespace is the host's; ..."; the version and what failed
};

inline constexpr const char* kAttackAt = "/opt/selftest";  // where the program's folder is shown

struct IsolationPlace {
  fs::path output;               // a folder of ours for what it prints
  std::vector<fs::path> hidden;  // of ours, which nothing inside may see
};
// `spec` shows the folder with the attack program at kAttackAt.
Result<IsolationProof> prove_isolation(SandboxEngine& engine, const SandboxSpec& spec,
                                       const IsolationPlace& place);

// The same of a whole kind, with a spec and files of its own: what a worker asks before it offers
// this kind to anybody.  `engine` was opened with `options`.
Result<IsolationProof> prove_kind(SandboxEngine& engine, const SandboxOptions& options);

}  // namespace proctor
