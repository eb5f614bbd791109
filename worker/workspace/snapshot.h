#pragma once
// Snapshots: a commit's files, checked out once per host, and the store that keeps such trees.
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/contract.h"
#include "worker/git/mirror.h"
#include "worker/git/object_db.h"
#include "worker/workspace/workspace.h"

namespace proctor {
// Every checked-out file has this mtime, so that two checkouts of one tree are alike and git's
// index can be written once and stay right in every copy.
inline constexpr long kCheckoutTime = 1'577'836'800;  // 2020-01-01T00:00:00Z; zip needs >= 1980
// Gives it to a file or link.
Status stamp(int dir, const std::string& name);

// Trees: one read-only checkout per tree id and host, made once under a lock between processes.
// Owns <root>: <root>/<tree id>[-submodules]/{work, git/.git, content, lockfiles, boot}.  `work` is
// the checkout without .git, `git` the one-commit repository that workspaces lay over it, `content`
// the id of the tree in `work`, `boot` the boot of the host in which it was made.
// Blocking.  Thread-safe.  Fails like MirrorStore, and with kInvalid when the commit's tree is not
// the expected one, kCorrupt when the files on disk do not hash to it (R047).
class TreeStore {
 public:
  static Result<TreeStore> create(const fs::path& root);
  Result<Snapshot> snapshot(const MirrorStore& mirrors, const Repository& repository,
                            const fs::path& base) const;

 private:
  TreeStore(fs::path root, std::string boot) : root_(std::move(root)), boot_(std::move(boot)) {}
  Result<Snapshot> make_snapshot(const MirrorStore& mirrors, const Repository& repository,
                                 const fs::path& base) const;
  bool ready(const fs::path& dir) const;
  fs::path root_;
  std::string boot_;
};

// Where the parts of a snapshot are.
fs::path snapshot_git_layer(const Snapshot& snapshot);  // holds ".git"
Result<ObjectId> snapshot_content(const Snapshot& snapshot);
}  // namespace proctor
