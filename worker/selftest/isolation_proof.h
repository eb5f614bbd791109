#pragma once
// The proof that what runs in a kind of sandbox is held apart from the host, and the attack's image
// for it.
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// The attack's image where an engine or a store has it.  Blocking; one thread.
// Fails with kUnavailable: the engine does not take it; else with what the store fails with.

// In a Docker Engine until its end, under a name of its own: others may have the same image.
class LoadedImage {
 public:
  explicit LoadedImage(std::string socket);
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;
  ~LoadedImage();
  Status load();
  const std::string& id() const { return id_; }

 private:
  Status call(const char* method, const std::string& target, const std::string& body) const;
  std::string socket_, name_, id_;
  bool loaded_ = false;
};

// Into the store at `store`, by way of a file in `dir`; the image's id.
Result<std::string> import_attack_image(const fs::path& store, const fs::path& dir);

// Is what runs in a sandbox of this engine held apart from the host?  Asked from outside: a program
// that does nothing stands still in it, and the host's own /proc says what it is.  Costs what an
// empty command costs, harms nobody whatever the answer is, and comes before all that would.
// Blocking; thread-safe (no state).  Fails with what the engine fails with: nothing stood still.

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
