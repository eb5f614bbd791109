#pragma once
// Which new files are build products and stay out of patches.  A file that the snapshot has always
// counts.  A new one does not if the snapshot's own .gitignore files ignore it (the agent's edits
// of them change nothing, so an agent can neither hide nor smuggle by them), or if it is one of a
// few products that every tool chain leaves: __pycache__/, *.pyc, .pytest_cache/, .mypy_cache/,
// .ruff_cache/, node_modules/, .DS_Store.  The contract's word goes before all of it: what its
// globs cover is wanted, ignored or not. Owns a libgit2 repository over the read-only tree; nothing
// of the workspace is read. One thread at a time.  Fails with libgit2's error.
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "worker/workspace/workspace.h"

namespace proctor {

class IgnoreRules {
 public:
  // `kept`: the contract's globs (policy.ignored).
  IgnoreRules(const Snapshot& snapshot, std::vector<std::string> kept);
  ~IgnoreRules();
  IgnoreRules(const IgnoreRules&) = delete;
  IgnoreRules& operator=(const IgnoreRules&) = delete;
  // `path` relative, of a file or folder that the snapshot does not have.  A folder that may hold
  // something wanted is not ignored; what is in it is asked for by itself.
  Result<bool> ignored(const std::string& path, bool folder);

 private:
  struct State;
  fs::path work_;
  fs::path git_;
  std::vector<std::string> kept_;
  std::unique_ptr<State> state_;  // opened when first asked: most runs add no file
};

}  // namespace proctor
